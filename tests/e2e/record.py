"""What an API server tells a client that lists and watches as sluiced does, byte by byte and with its time, for
tests/world (world --recorded FILE).

    SLUICE_RECORD=tests/world/recorded/sets.gz hack/cluster/python -m pytest tests/e2e/test_shapes.py -k m8_sets

records what happens in the cluster from before the first sluiced of the module starts until that one ends.  At the
end of each test, before its namespace is cleaned up, the recorder waits until nothing changes for two seconds and
writes down what must be so then: the versions of all objects, how much of each node is free, which pods are where and
in which group.  It takes that from lists of its own (in JSON), not from sluiced.

A recording is a gzip file of pieces: a line "MICROSECONDS GROUP/RESOURCE WHAT ENCODING BYTES", the bytes, a newline.
WHAT is page, watch, absent (the server does not know the kind) or expect.
"""

import gzip
import http.client
import json
import socket
import struct
import threading
import time
from decimal import Decimal
from urllib.parse import urlencode

PB = "application/vnd.kubernetes.protobuf"
KINDS = [
    ("", "v1", "nodes"),
    ("", "v1", "pods"),
    ("", "v1", "namespaces"),
    ("", "v1", "limitranges"),
    ("", "v1", "persistentvolumeclaims"),
    ("", "v1", "persistentvolumes"),
    ("batch", "v1", "jobs"),
    ("apps", "v1", "replicasets"),
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "deployments"),
    ("scheduling.k8s.io", "v1", "priorityclasses"),
    ("storage.k8s.io", "v1", "storageclasses"),
    ("node.k8s.io", "v1", "runtimeclasses"),
    ("scheduling.x-k8s.io", "v1alpha1", "podgroups"),
    ("scheduling.sigs.k8s.io", "v1alpha1", "podgroups"),
    ("jobs.converged-computing.org", "v1alpha1", "fluxjobs"),
    ("sluice.sh", "v1alpha1", "reservations"),
]
CONTROL = {"node-role.kubernetes.io/control-plane"}  # no nodes for work
CUSTOM = ("podgroups", "fluxjobs", "reservations")  # they have no protobuf form


def _fields(data):
    """The length-delimited fields of a protobuf message, as (number, bytes)."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            raise ValueError(f"wire type {key & 7}")


def _field(data, number):
    return next((v for n, v in _fields(data) if n == number), b"")


def _list_version(body):
    return _field(_field(_field(body[4:], 2), 1), 2).decode()


def _millis(text):
    for suffix, factor in (("m", Decimal(1)), ("k", Decimal(10) ** 6), ("", Decimal(1000))):
        if text.endswith(suffix):
            return int(Decimal(text[: len(text) - len(suffix)]) * factor)
    raise AssertionError


class Recorder:
    def __init__(self, cluster, path):
        self.api, self.path = cluster.admin, path
        self._lock = threading.Lock()
        self._pieces, self._sockets, self._wrong = [], [], []
        self._over = False
        self.kinds = {}

    def _put(self, kind, what, encoding, body, at=None):
        with self._lock:
            self._pieces.append((at or time.time_ns() // 1000, kind, what, encoding, body))

    def _ask(self, path, accept, **query):
        conn = self.api._connect(3600)
        conn.request("GET", f"{path}?{urlencode(query)}", headers=self.api._headers(None, accept))
        self._sockets.append(conn.sock)
        return conn.getresponse()

    def _watch(self, kind, answer, encoding):
        try:
            while True:
                if encoding == "json":
                    body = answer.readline()
                else:
                    head = answer.read(4)
                    body = head + answer.read(struct.unpack(">I", head)[0]) if len(head) == 4 else b""
                if not body:
                    break
                self._put(kind, "watch", encoding, body)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        if not self._over:
            self._wrong.append(f"the watch of {kind} ended")

    def _begin(self, group, version, resource):
        kind = f"{group or 'core'}/{resource}"
        path = f"/apis/{group}/{version}/{resource}" if group else f"/api/{version}/{resource}"
        encoding, accept = ("json", "application/json") if resource in CUSTOM else ("pb", PB)
        answer = self._ask(path, accept, limit=500)
        body = answer.read()
        if answer.status == 404:
            self._put(kind, "absent", encoding, b"")
            return
        assert answer.status == 200, (kind, answer.status, body[:200])
        self._put(kind, "page", encoding, body)
        self.kinds[kind] = path
        since = json.loads(body)["metadata"]["resourceVersion"] if encoding == "json" else _list_version(body)
        accept = accept if encoding == "json" else PB + ";stream=watch"
        answer = self._ask(path, accept, watch=1, resourceVersion=since, allowWatchBookmarks="true", timeoutSeconds=3600)
        assert answer.status == 200, (kind, answer.status)
        threading.Thread(target=self._watch, args=(kind, answer, encoding), daemon=True).start()

    def begin(self):
        for row in KINDS:
            self._begin(*row)
        return self

    def _lists(self):
        return {kind: self.api.request("GET", path)["items"] for kind, path in self.kinds.items()}

    @staticmethod
    def _versions(lists):
        return {
            kind: {f"{o['metadata'].get('namespace', '')}/{o['metadata']['name']}": o["metadata"]["resourceVersion"] for o in items}
            for kind, items in lists.items()
        }

    @staticmethod
    def _expected(lists):
        owner = {o["metadata"]["uid"]: o for kind in ("apps/replicasets", "batch/jobs") for o in lists[kind]}
        free = {n["metadata"]["name"]: _millis(n["status"]["allocatable"]["cpu"]) for n in lists["core/nodes"] if not CONTROL & n["metadata"]["labels"].keys()}
        groups = {}
        for pod in lists["core/pods"]:
            meta, spec = pod["metadata"], pod["spec"]
            if pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            assert not spec.get("initContainers"), "what a pod with init containers takes is not worked out here"
            node = spec.get("nodeName", "")
            if node in free:
                free[node] -= sum(_millis(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for c in spec["containers"])
            if spec["schedulerName"] == "default-scheduler" or "deletionTimestamp" in meta:
                continue
            name, refs = meta["name"], meta.get("ownerReferences")
            while refs:
                name = refs[0]["name"]
                refs = owner.get(refs[0]["uid"], {"metadata": {}})["metadata"].get("ownerReferences")
            name = meta.get("labels", {}).get("sluice.sh/group", name)
            groups.setdefault(f"{meta['namespace']}/{name}", {})[meta["name"]] = node
        return free, groups

    def mark(self):
        """Nothing changes for two seconds; what was so in the middle of them."""
        seen = []  # (versions, lists, time), as long as they are equal
        for _ in range(60):
            lists = self._lists()
            now = self._versions(lists)
            if seen and seen[-1][0] != now:
                seen = []
            seen.append((now, lists, time.time_ns() // 1000))
            if len(seen) == 3:
                break
            time.sleep(1)
        else:
            raise AssertionError("the cluster does not come to rest")
        versions, lists, at = seen[1]
        free, groups = self._expected(lists)
        body = json.dumps({"objects": versions, "free": free, "groups": groups}, separators=(",", ":"))
        self._put("core/pods", "expect", "json", body.encode(), at)

    def end(self):
        self._over = True
        for s in self._sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        assert not self._wrong, self._wrong
        with gzip.GzipFile(self.path, "wb", compresslevel=9, mtime=0) as f:
            for at, what, how, encoding, body in sorted(self._pieces, key=lambda p: p[0]):
                f.write(f"{at} {what} {how} {encoding} {len(body)}\n".encode() + body + b"\n")

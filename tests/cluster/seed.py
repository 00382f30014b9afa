"""Thousands of objects in seconds, written into etcd behind the API server's back.

The API server decodes JSON from etcd as well as its own protobuf, and its watch cache sees the
new keys as it sees any other: clients get ordinary ADDED events.  What is left out: admission,
validation, audit and managed fields.  The API server needs about a minute for 50 000 pods on two
cores, this a few seconds.

What one transaction writes has one revision.  While the API server takes it in piece by piece, a list
of that revision is short of some, and a watch that goes on from there never tells of them: a scheduler
that starts in that moment does not know all nodes as long as it lives.  So start nothing that lists the
same kind while seed() runs; when it returns, the API server has taken in everything.
"""

import base64
import copy
import json
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from . import nodes
from .api import Api, ApiError

_FOLDERS = {"Node": "minions", "Pod": "pods", "Job": "jobs", "Namespace": "namespaces", "PriorityClass": "priorityclasses"}


def etcd(cluster):
    """An Api that speaks to etcd's HTTP gateway: request("POST", "/v3/...", {...})."""
    p = cluster.pki
    return Api(f"https://127.0.0.1:{cluster.ports['etcd']}", p / "ca.crt", p / "etcd-client.crt", p / "etcd-client.key")


def _b64(data):
    return base64.b64encode(data).decode()


def _put(obj, stamp):
    obj = copy.copy(obj)
    meta = obj["metadata"] = {"creationTimestamp": stamp, "uid": str(uuid.uuid4()), **obj["metadata"]}
    if obj["kind"] == "Pod":
        obj.setdefault("status", {"phase": "Pending", "qosClass": "Burstable"})
    parts = ["/registry", _FOLDERS[obj["kind"]]]
    if obj["kind"] in ("Pod", "Job"):
        parts.append(meta.setdefault("namespace", "default"))
    key = "/".join([*parts, meta["name"]])
    return {"requestPut": {"key": _b64(key.encode()), "value": _b64(json.dumps(obj).encode())}}


def _wait_ready(cluster, client, timeout):
    process, end = cluster.processes["etcd"], time.monotonic() + timeout
    while True:
        if not process.pid:
            raise RuntimeError(f"etcd ended:\n{process.tail()}")
        try:
            return client.request("GET", "/health")
        except (OSError, ApiError) as e:
            if time.monotonic() > end:
                raise TimeoutError(f"etcd is not ready after {timeout} s: {e}") from e
            time.sleep(0.05)


def _wait_taken(api, obj, timeout):
    """Wait until the API server's cache has the object; the server may be restarted in the meantime."""
    meta, end = obj["metadata"], time.monotonic() + timeout
    path = api.path(obj["kind"], meta["name"], meta.get("namespace", "default"), api_version=obj["apiVersion"])
    while True:
        try:
            return api.request("GET", path, query={"resourceVersion": "0"})
        except (ApiError, OSError) as e:
            settled = isinstance(e, ApiError) and e.status not in (401, 403, 404, 429, 500, 503)
            if settled or time.monotonic() > end:
                raise
            time.sleep(0.02)


def seed(cluster, objects, batch=500, workers=4, before=False):
    """Write objects (Node, Pod, Job, Namespace, PriorityClass) into etcd; returns how many.  `before`: the API
    server does not run yet, etcd may still be starting."""
    stamp = nodes.now()
    client = etcd(cluster)
    objects = list(objects)
    last = {o["kind"]: o for o in objects}.values()
    first = [o for o in objects if not any(o is x for x in last)]

    def write(part):
        client.request("POST", "/v3/kv/txn", {"success": [_put(o, stamp) for o in part]})

    try:
        if before:
            _wait_ready(cluster, client, 60)
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(write, (first[i : i + batch] for i in range(0, len(first), batch))))
        for o in last:  # of a later revision than all others of its kind
            write([o])
    finally:
        client.close()
    if not before:
        for o in last:
            _wait_taken(cluster.admin, o, 120)
    return len(objects)


def unseed(cluster, namespace):
    """Remove all pods and events of a namespace from etcd, at once; clients get ordinary DELETED events."""
    client = etcd(cluster)
    try:
        for folder in ("pods", "events"):
            key = f"/registry/{folder}/{namespace}/".encode()
            end = key[:-1] + bytes([key[-1] + 1])
            client.request("POST", "/v3/kv/deleterange", {"key": _b64(key), "range_end": _b64(end)})
    finally:
        client.close()


def compact(cluster):
    """Forget all history in etcd: a watch that resumes from an older version gets 410 Gone."""
    client = etcd(cluster)
    try:
        answer = client.request("POST", "/v3/kv/range", {"key": _b64(b"/registry/health"), "limit": "1"})
        revision = answer["header"]["revision"]
        client.request("POST", "/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)
    finally:
        client.close()

"""Thousands of objects in seconds, written into etcd behind the API server's back.

The API server decodes JSON from etcd as well as its own protobuf, and its watch cache sees the
new keys as it sees any other: clients get ordinary ADDED events.  What is left out: admission,
validation, audit and managed fields.  The API server needs about a minute for 50 000 pods on two
cores, this a few seconds.
"""

import base64
import copy
import json
import uuid
from concurrent.futures import ThreadPoolExecutor

from . import nodes
from .api import Api

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


def seed(cluster, objects, batch=500, workers=4):
    """Write objects (Node, Pod, Job, Namespace, PriorityClass) into etcd; returns how many."""
    stamp = nodes.now()
    client = etcd(cluster)
    objects = list(objects)

    def write(start):
        puts = [_put(o, stamp) for o in objects[start : start + batch]]
        client.request("POST", "/v3/kv/txn", {"success": puts})

    try:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(write, range(0, len(objects), batch)))
    finally:
        client.close()
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

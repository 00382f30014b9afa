"""Pods, Jobs and gangs for tests, and the books of a cluster: who uses how much of which node."""

import re
import time
from decimal import Decimal

from .patience import patient

_SUFFIX = {
    "": 1, "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": 10**3, "M": 10**6, "G": 10**9,
    "T": 10**12, "P": 10**15, "E": 10**18, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50,
    "Ei": 2**60,
}


def quantity(text):
    """A Kubernetes quantity as an exact number."""
    number, suffix = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)", str(text)).groups()
    return Decimal(number) * _SUFFIX[suffix]


def pod(name, cpu=1, memory="64Mi", gpu=0, namespace="default", run=None, scheduler=None, labels=None,
        annotations=None, restart="Never", node=None, **spec):
    """A Pod.  `run` is sluice.test/run-seconds; further keywords go into the spec."""
    notes = dict(annotations or {})
    if run is not None:
        notes["sluice.test/run-seconds"] = str(run)
    resources = {"cpu": str(cpu), "memory": str(memory)}
    limits = {"nvidia.com/gpu": str(gpu)} if gpu else {}
    body = {
        "restartPolicy": restart,
        "containers": [
            {"name": "main", "image": "simulated", "resources": {"requests": {**resources, **limits}, "limits": limits}}
        ],
        **({"schedulerName": scheduler} if scheduler else {}),
        **({"nodeName": node} if node else {}),
        **spec,
    }
    meta = {"name": name, "namespace": namespace, "labels": dict(labels or {}), "annotations": notes}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def running(p):
    """The same pod as it looks a moment after its start: for seed(), where thousands must not be started
    one by one.  It needs a node."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    state = {"running": {"startedAt": stamp}}
    common = {"imageID": "", "containerID": f"sim://{int(now * 1000)}", "ready": True, "started": True, "restartCount": 0}
    kinds = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
    status = {
        "phase": "Running",
        "qosClass": "Burstable",
        "startTime": stamp,
        "conditions": [{"type": k, "status": "True", "lastTransitionTime": stamp} for k in kinds],
        "containerStatuses": [
            {"name": c["name"], "image": c["image"], "state": state, **common} for c in p["spec"]["containers"]
        ],
    }
    return {**p, "status": status}


def job(name, pods=1, completions=None, namespace="default", backoff=0, labels=None, indexed=False, **template):
    """A Job whose template is pod(**template)."""
    inner = pod(name, namespace=namespace, labels=labels, **template)
    inner["metadata"].pop("name")
    inner["metadata"].pop("namespace")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "parallelism": pods,
            "completions": pods if completions is None else completions,
            "backoffLimit": backoff,
            **({"completionMode": "Indexed"} if indexed else {}),
            "template": {"metadata": inner["metadata"], "spec": inner["spec"]},
        },
    }


def gang(name, size, pods=None, namespace="default", labels=None, **template):
    """The pods of one gang, with the group labels every system knows."""
    keys = {"scheduling.x-k8s.io/pod-group": name, "fluence.group-size": str(size), **(labels or {})}
    return [
        pod(f"{name}-{i}", namespace=namespace, labels=keys, **template) for i in range(pods if pods else size)
    ]


def phase_is(phase):
    """A test for Api.wait(): the pod is there and in this phase."""
    return lambda p: p is not None and p["status"].get("phase") == phase


def condition(obj, kind):
    """The condition of that type in an object's status, {} when it has none."""
    return next((c for c in obj["status"].get("conditions", []) if c["type"] == kind), {})


def wait_phase(api, names, phase, namespace="default", timeout=0):
    """Until all named pods have the phase; returns them."""
    names = set(names)
    end = time.monotonic() + patient(timeout)
    while True:
        pods = [p for p in api.list("pods", namespace) if p["metadata"]["name"] in names]
        if len(pods) == len(names) and all(p["status"].get("phase") == phase for p in pods):
            return pods
        if time.monotonic() > end:
            seen = {p["metadata"]["name"]: p["status"].get("phase") for p in pods}
            raise TimeoutError(f"not all {phase} in time: {seen}")
        time.sleep(0.05)


def requests(pod):
    """What a pod asks of its node: containers and sidecars together, or the largest init step."""
    spec = pod["spec"]

    def of(container):
        return {k: quantity(v) for k, v in container.get("resources", {}).get("requests", {}).items()}

    def add(a, b):
        return {k: a.get(k, 0) + b.get(k, 0) for k in {*a, *b}}

    def most(a, b):
        return {k: max(a.get(k, 0), b.get(k, 0)) for k in {*a, *b}}

    sidecars, peak = {}, {}
    for c in spec.get("initContainers", []):
        if c.get("restartPolicy") == "Always":
            sidecars = add(sidecars, of(c))
            peak = most(peak, sidecars)
        else:
            peak = most(peak, add(sidecars, of(c)))
    total = sidecars
    for c in spec.get("containers", []):
        total = add(total, of(c))
    total = add(most(total, peak), {k: quantity(v) for k, v in spec.get("overhead", {}).items()})
    total["pods"] = 1
    return total


def usage(api):
    """{node: {resource: (used, allocatable)}} of everything that is bound and has not ended."""
    books = {
        n["metadata"]["name"]: {k: [0, quantity(v)] for k, v in n["status"]["allocatable"].items()}
        for n in api.list("nodes")
    }
    for p in api.list("pods"):
        node = p["spec"].get("nodeName")
        if node in books and p["status"].get("phase") not in ("Succeeded", "Failed"):
            for resource, amount in requests(p).items():
                books[node].setdefault(resource, [0, 0])[0] += amount
    return {n: {k: tuple(v) for k, v in r.items()} for n, r in books.items()}


def overbooked(api):
    """{(node, resource): (used, allocatable)} where more is used than there is; {} is right."""
    return {(n, k): v for n, r in usage(api).items() for k, v in r.items() if v[0] > v[1]}

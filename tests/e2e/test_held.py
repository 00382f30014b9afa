"""Work held at the door, on a real API server with the default scheduler: gates, suspended Jobs, release
to planned nodes, every kind of owner, and a webhook that misbehaves."""

import copy
import itertools
import os
import socket
import time

import pytest
import yaml

from cluster import work

from .conftest import crds, until
from .daemon import ROOT, Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 4}]}
GATE = "fluxqueue"
_spaces = itertools.count(1)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def hooks(port):
    """deploy/webhook.yaml with its Service replaced by this machine's port."""
    objects = list(yaml.safe_load_all((ROOT / "deploy" / "webhook.yaml").read_text()))
    config = next(o for o in objects if o["kind"] == "MutatingWebhookConfiguration")
    for hook in config["webhooks"]:
        hook["clientConfig"] = {"url": f"https://localhost:{port}{hook['clientConfig']['service']['path']}"}
    return config


@pytest.fixture(scope="module")
def held(module_cluster):
    """A daemon with its webhook in force."""
    crds(module_cluster)
    port = free_port()
    module_cluster.admin.apply(hooks(port))
    settings = {
        "webhook": {"enabled": True, "listen": f"127.0.0.1:{port}", "names": ["localhost"]},
        "held": {"refusedFor": "3s"},
    }
    with Sluiced(module_cluster, config=settings) as d:
        d.hook_port = port
        until(lambda: "webhook answers" in d.log.read_text())
        time.sleep(1)  # the API server reads a changed configuration a moment later
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


@pytest.fixture
def door(module_cluster):
    """door("true"): a fresh namespace with that value of sluice.sh/hold."""
    made = []

    def make(mode="true"):
        name = f"h{next(_spaces)}-{os.getpid()}"
        module_cluster.namespace(name, labels={"sluice.sh/hold": mode} if mode else None)
        made.append(name)
        return name

    yield make
    for name in made:
        for kind in ("cronjobs", "jobs", "deployments", "replicasets", "statefulsets"):
            for obj in module_cluster.admin.list(kind, name):
                module_cluster.admin.delete(kind, obj["metadata"]["name"], name, propagation="Background", missing_ok=True)
        module_cluster.admin.delete_all("pods", name, grace=0)
        module_cluster.admin.delete("namespaces", name, None)


def pods(cluster, space, **labels):
    return [
        p for p in cluster.admin.list("pods", space)
        if all(p["metadata"].get("labels", {}).get(k) == v for k, v in labels.items())
    ]  # fmt: skip


def check_released(p, scheduler="default-scheduler"):
    """A pod that was let go the right way: pinned, labelled, free of our gate, on its node and no other."""
    meta, spec = p["metadata"], p["spec"]
    node = meta["labels"]["sluice.sh/node"]
    assert GATE not in [g["name"] for g in spec.get("schedulingGates", [])]
    assert spec["schedulerName"] == scheduler
    assert meta["labels"]["fluxqueue/jobid"].isdigit()
    assert node in meta["annotations"]["sluice.sh/nodes"].split(",")
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for term in terms:
        assert {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]} in term["matchExpressions"]
    assert spec.get("nodeName") in (None, node), "the pod runs elsewhere"
    return node


def running(cluster, space, count, timeout=20, **labels):
    """Until so many pods run; each must have been released."""

    def look():
        found = [p for p in pods(cluster, space, **labels) if p["status"].get("phase") == "Running"]
        return found if len(found) == count else None

    return until(look, timeout, f"{count} pods of {space} running")


def test_pod_is_held_and_released(held, module_cluster, door):
    space = door()
    made = module_cluster.admin.create(work.pod("one", cpu=1, namespace=space, run=60))
    assert [g["name"] for g in made["spec"]["schedulingGates"]] == [GATE]
    assert made["spec"]["schedulerName"] == "default-scheduler"
    (p,) = running(module_cluster, space, 1)
    check_released(p)


def test_job_is_suspended_and_each_pod_gets_its_place(held, module_cluster, door):
    space = door()
    made = module_cluster.admin.create(work.job("two", pods=4, namespace=space, cpu=2, run=60, indexed=True))
    assert made["spec"]["suspend"] is True
    found = running(module_cluster, space, 4)
    nodes = [check_released(p) for p in found]
    assert len(set(nodes)) == 2, "two pods of 2 cpu on each node of 4"

"""MPIJob and JobSet with their published controllers, and CronJob: each is a gang without a key of ours.

Six nodes of 4 processors; a pod of 3 has a node to itself, one of 1 fits beside it.
"""

import pytest

from cluster import work
from cluster.patience import until
from e2e.daemon import Sluiced

from .operators import Operators

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 4}]}


@pytest.fixture(scope="module")
def sluiced(module_cluster):
    with Operators(module_cluster), Sluiced(module_cluster) as d:
        yield d


@pytest.fixture
def space(module_cluster, request):
    name = request.node.name.replace("_", "-")[:50]
    module_cluster.namespace(name)
    yield name
    for kind in ("mpijobs", "jobsets", "cronjobs", "jobs"):
        for obj in module_cluster.admin.list(kind, name):
            module_cluster.admin.delete(kind, obj["metadata"]["name"], name, propagation="Background", missing_ok=True)
    until(lambda: not module_cluster.admin.list("pods", name), message="the pods go with their objects")


def template(cpu=3, run=600, restart="Never", labels=None):
    """A pod template for Sluice."""
    p = work.pod("x", cpu=cpu, run=run, scheduler="sluice", restart=restart, labels=labels)
    return {"metadata": {k: p["metadata"][k] for k in ("labels", "annotations")}, "spec": p["spec"]}


def pods(cluster, space):
    return {p["metadata"]["name"]: p for p in cluster.admin.list("pods", space)}


def bound(cluster, space):
    return {n: p["spec"]["nodeName"] for n, p in pods(cluster, space).items() if p["spec"].get("nodeName")}


def running(cluster, space):
    return [n for n, p in pods(cluster, space).items() if p["status"].get("phase") == "Running"]


@pytest.fixture
def wall(module_cluster, space):
    """A pod of the default scheduler on each of five nodes: one node is free until wall() takes them away."""
    for i in range(5):
        module_cluster.admin.create(work.pod(f"wall-{i}", cpu=4, run=6000, node=f"node-{i:03d}"))
    yield lambda: module_cluster.admin.delete_all("pods", "default", grace=0)
    module_cluster.admin.delete_all("pods", "default", grace=0)


def waits_whole(cluster, space, sluiced, size):
    """All members are there, none has a node, and the gang is one line of the queue."""
    until(lambda: len(pods(cluster, space)) == size, message=f"{size} pods are made")
    mine = until(lambda: [j for j in sluiced.jobs().values() if j["namespace"] == space and j["size"] == size], message=f"one gang of {size}")
    assert len(mine) == 1 and not bound(cluster, space)


def test_mpijob(sluiced, module_cluster, space, wall):
    """Launcher and workers are one gang of two roles: the operator makes the PodGroup."""
    spec = lambda cpu: {"restartPolicy": "Never", "template": template(cpu)}  # noqa: E731
    module_cluster.admin.create({
        "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "pi", "namespace": space},
        "spec": {"slotsPerWorker": 1, "runPolicy": {"cleanPodPolicy": "Running"},
                 "mpiReplicaSpecs": {"Launcher": {"replicas": 1, **spec(1)}, "Worker": {"replicas": 3, **spec(3)}}},
    })  # fmt: skip
    waits_whole(module_cluster, space, sluiced, 4)
    wall()
    until(lambda: len(running(module_cluster, space)) == 4, message="launcher and workers run")
    workers = {node for name, node in bound(module_cluster, space).items() if "-worker-" in name}
    assert len(workers) == 3, "each worker has a node of its own"


def test_jobset(sluiced, module_cluster, space, wall):
    """All Jobs of a JobSet start together: a driver and two Jobs of two workers."""
    def part(name, replicas, size, cpu):
        return {"name": name, "replicas": replicas, "template": {"spec": {"parallelism": size, "completions": size, "backoffLimit": 0, "template": template(cpu)}}}

    module_cluster.admin.create({
        "apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train", "namespace": space},
        "spec": {"replicatedJobs": [part("driver", 1, 1, 1), part("workers", 2, 2, 3)]},
    })  # fmt: skip
    waits_whole(module_cluster, space, sluiced, 5)
    wall()
    until(lambda: len(running(module_cluster, space)) == 5, message="driver and workers run")


def test_cronjob(sluiced, module_cluster, space, wall):
    module_cluster.admin.create({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": space},
        "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid",
                 "jobTemplate": {"spec": {"parallelism": 3, "completions": 3, "template": template()}}},
    })  # fmt: skip
    waits_whole(module_cluster, space, sluiced, 3)
    wall()
    until(lambda: len(running(module_cluster, space)) == 3, message="its gang runs")

"""MPIJob, JobSet and LeaderWorkerSet with their published controllers, and CronJob: each is a gang without a key of ours.

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
    for kind in ("mpijobs", "jobsets", "leaderworkersets", "cronjobs", "jobs"):
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


def leader_worker_set(name, space, size, replicas=1, leader=None, worker=3, policy="LeaderCreated"):
    parts = {"size": size, "restartPolicy": "RecreateGroupOnPodRestart", "workerTemplate": template(worker, restart="Always")}
    if leader:
        parts["leaderTemplate"] = template(leader, restart="Always")
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": name, "namespace": space},
            "spec": {"replicas": replicas, "startupPolicy": policy, "leaderWorkerTemplate": parts}}  # fmt: skip


def test_leader_worker_set(sluiced, module_cluster, space, wall):
    """A leader and its workers are one gang of two roles, called as the leader; another replica is another gang."""
    module_cluster.admin.create(leader_worker_set("serve", space, 3, leader=1))
    waits_whole(module_cluster, space, sluiced, 3)
    assert sluiced.jobs(space)["serve-0"]["size"] == 3
    wall()
    until(lambda: len(running(module_cluster, space)) == 3, message="leader and workers run")
    module_cluster.kubectl("scale", "-n", space, "leaderworkerset/serve", "--replicas=2")
    until(lambda: len(running(module_cluster, space)) == 6, message="the second group runs")
    assert set(sluiced.jobs(space)) == {"serve-0", "serve-1"}
    # A member fails, its controller makes the whole group again, and the new group starts as a gang.
    before = {p["metadata"]["uid"] for p in pods(module_cluster, space).values()}
    module_cluster.admin.delete("pods", "serve-1-1", space)

    def anew():
        now = pods(module_cluster, space)
        fresh = [n for n, p in now.items() if p["metadata"]["uid"] not in before]
        return len(fresh) == 3 and set(fresh) <= set(running(module_cluster, space))

    until(anew, message="the second group is made again and runs")
    module_cluster.kubectl("scale", "-n", space, "leaderworkerset/serve", "--replicas=1")
    until(lambda: set(sluiced.jobs(space)) == {"serve-0"} and len(pods(module_cluster, space)) == 3, message="the second group is gone")


def test_workers_that_wait_for_their_leader(sluiced, module_cluster, space, wall):
    """LeaderReady: no worker is made before the leader is ready, so it starts alone, but only with places for its workers."""
    module_cluster.admin.create(leader_worker_set("late", space, 3, policy="LeaderReady"))
    until(lambda: "late-0" in sluiced.jobs(space) and sluiced.jobs(space)["late-0"]["state"] == "waiting", message="the leader is in the queue")
    assert list(pods(module_cluster, space)) == ["late-0"] and not bound(module_cluster, space), "one node is free, three are needed"
    wall()
    until(lambda: len(running(module_cluster, space)) == 3, message="leader and workers run")
    assert len(set(bound(module_cluster, space).values())) == 3


def test_cronjob(sluiced, module_cluster, space, wall):
    module_cluster.admin.create({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": space},
        "spec": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid",
                 "jobTemplate": {"spec": {"parallelism": 3, "completions": 3, "template": template()}}},
    })  # fmt: skip
    waits_whole(module_cluster, space, sluiced, 3)
    wall()
    until(lambda: len(running(module_cluster, space)) == 3, message="its gang runs")

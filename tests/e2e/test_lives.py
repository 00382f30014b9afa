"""Ordinary changes that users make to gangs, on a real API server: each gang starts as a whole or not at all."""

import time

import pytest

from cluster import work

from .conftest import until
from .daemon import Sluiced

CLUSTER = {"node_list": [{"name": "n", "count": 4, "cpu": 8, "memory": "32Gi"}]}
SETTINGS = {"status": {"interval": "1s", "audit": "2s"}}


@pytest.fixture(scope="module")
def sluiced(module_cluster):
    with Sluiced(module_cluster, SETTINGS) as d:
        yield d
        assert d.process.poll() is None, d.tail(40)


@pytest.fixture
def admin(module_cluster, sluiced, space):
    yield module_cluster.admin
    for kind in ("jobs", "pods"):
        module_cluster.admin.delete_all(kind, space, grace=0)


def placed(admin, space, prefix=""):
    return [
        p["metadata"]["name"] for p in admin.list("pods", space)
        if p["spec"].get("nodeName") and p["metadata"]["name"].startswith(prefix)
    ]  # fmt: skip


def occupy(admin, space, nodes):
    for i in range(nodes):
        admin.create(work.pod(f"busy-{i}", cpu=8, namespace=space, restart="Always", node=f"n-00{i}"))


def free(admin, space, nodes):
    for i in range(nodes):
        admin.delete("pods", f"busy-{i}", space, grace=0)


def test_a_gang_deleted_while_it_waits_does_not_start(admin, sluiced, space):
    admin.create(work.job("gone", pods=6, cpu=8, namespace=space, scheduler="sluice", run=100))
    until(lambda: sluiced.jobs().get("gone", {}).get("state") in ("waiting", "never"))
    admin.delete("jobs", "gone", space, propagation="Background")
    until(lambda: not admin.list("pods", space))
    names = [e["regarding"]["name"] for e in admin.list("events.events.k8s.io", space) if e.get("reason") == "Scheduled"]
    assert not [n for n in names if n.startswith("gone")]


def test_pods_of_a_job_that_is_being_deleted_do_not_start(admin, sluiced, space):
    occupy(admin, space, 4)
    j = work.job("kept", pods=2, cpu=8, namespace=space, scheduler="sluice", run=100)
    j["metadata"]["finalizers"] = ["example.com/audit"]
    admin.create(j)
    until(lambda: sluiced.jobs().get("kept", {}).get("state") == "waiting")
    admin.delete("jobs", "kept", space, propagation="Background")
    until(lambda: admin.get("jobs", "kept", space)["metadata"].get("deletionTimestamp"))
    time.sleep(1)
    free(admin, space, 4)
    time.sleep(2)
    assert not placed(admin, space, "kept")
    admin.patch("jobs", "kept", {"metadata": {"finalizers": []}}, space)


def test_two_jobs_of_one_group_are_one_gang(admin, sluiced, space):
    occupy(admin, space, 1)
    for name in "ab":
        admin.create(work.job(name, pods=2, cpu=8, namespace=space, scheduler="sluice", labels={"sluice.sh/group": "pair"}, run=100))
    until(lambda: sluiced.jobs().get("pair", {}).get("state") == "waiting" and sluiced.jobs()["pair"]["size"] == 4)
    time.sleep(2)
    assert not placed(admin, space, "a-") and not placed(admin, space, "b-")
    free(admin, space, 1)
    until(lambda: len(placed(admin, space)) == 4)


def test_a_pod_that_is_resized_in_place_counts_with_what_it_has(admin, sluiced, space):
    for name, how in (("other", {"node": "n-000"}), ("mine", {"scheduler": "sluice", "nodeSelector": {"kubernetes.io/hostname": "n-001"}})):
        admin.create(work.pod(name, cpu=1, namespace=space, restart="Always", **how))
    until(lambda: all(p["status"].get("phase") == "Running" for p in admin.list("pods", space)) and len(placed(admin, space)) == 2)

    def kubelet():  # kwok does not report resources; a kubelet does
        for p in admin.list("pods", space):
            statuses, asked = p["status"]["containerStatuses"], p["spec"]["containers"][0]["resources"]["requests"]
            for s in statuses:
                s["resources"], s["allocatedResources"] = {"requests": asked}, asked
            admin.patch("pods", p["metadata"]["name"], {"status": {"containerStatuses": statuses}}, space, subresource="status")

    kubelet()
    for name in ("other", "mine"):
        larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "7"}}}]}}
        admin.patch("pods", name, larger, space, type="strategic", subresource="resize")
    kubelet()
    until(lambda: all(sluiced.nodes()[n]["resources"]["cpu"]["free"] == 1000 for n in ("n-000", "n-001")))
    admin.create_many(work.gang("wide", 4, cpu=7, namespace=space, scheduler="sluice", run=100))
    time.sleep(2)
    assert not placed(admin, space, "wide") and not work.overbooked(admin)


def test_required_anti_affinity_of_others_is_obeyed(admin, sluiced, space):
    term = {"labelSelector": {"matchLabels": {"app": "batch"}}, "topologyKey": "kubernetes.io/hostname"}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for i in range(4):
        admin.create(work.pod(f"db-{i}", cpu=1, namespace=space, restart="Always", node=f"n-00{i}", affinity=anti))
    admin.create(work.pod("away", cpu=1, namespace=space, restart="Always", scheduler="sluice", labels={"app": "batch"}))
    until(lambda: "anti-affinity" in sluiced.jobs().get("away", {}).get("reason", ""))
    assert not placed(admin, space, "away")
    admin.delete("pods", "db-2", space, grace=0)
    until(lambda: placed(admin, space, "away"))
    assert admin.get("pods", "away", space)["spec"]["nodeName"] == "n-002"


def replicas(kind, name, n, space):
    spec = {"replicas": n, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}}}
    spec["template"]["spec"] = work.pod(name, cpu=8, restart="Always", scheduler="sluice")["spec"]
    if kind == "StatefulSet":
        spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": space}, "spec": spec}


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
def test_an_object_made_again_has_the_pods_that_it_adopts(admin, sluiced, space, kind):
    resource = kind.lower() + "s"
    admin.create(replicas(kind, "kept", 3, space))
    until(lambda: len(placed(admin, space, "kept")) == 3)
    before = placed(admin, space, "kept")
    admin.delete(resource, "kept", space, propagation="Orphan")
    until(lambda: not admin.list(resource, space))
    admin.create(replicas(kind, "kept", 4, space))
    until(lambda: len(placed(admin, space, "kept")) == 4)
    assert set(before) < set(placed(admin, space, "kept"))
    admin.delete_all(resource, space, grace=0)

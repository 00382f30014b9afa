"""Gangs seen from outside, native gangs, thousands of objects, the books."""

import time

import pytest

from . import nodes
from .api import ApiError
from .gangs import GangWatch
from .patience import until
from .seed import seed
from .work import gang, overbooked, pod, quantity, requests, usage, wait_phase


def test_gang_watch_sees_the_default_scheduler_clog(make_cluster):
    """Two gangs of three whole nodes on four nodes: the default scheduler half-starts one of them at
    least when they arrive interleaved, and the watcher says so."""
    c = make_cluster("clog", node_list=[{"name": "n", "count": 4, "cpu": 4}])
    with GangWatch(c.admin) as watch:
        one, two = gang("one", 3, cpu=4, run=600), gang("two", 3, cpu=4, run=600)
        for a, b in zip(one, two, strict=True):
            c.admin.create(a)
            c.admin.create(b)
        watch.wait(lambda w: sum(len(g.running) for g in w.gangs.values()) == 4)
        time.sleep(1)
        half = watch.half_started()
        assert half and set(half) <= {("default", "one"), ("default", "two")}
        assert watch.longest_partial() > 0.9
        assert all(i.end is None for g in half for i in watch.partial()[g])
        assert watch.clogged() >= sum(len(watch.gangs[g].bound) for g in half) * 0.9
        # Room for all: the gangs become whole, and no interval stays open.
        c.kill("apiserver")
        c.start("apiserver")
        c.add_nodes({"name": "more", "count": 2, "cpu": 4})
        watch.wait(lambda w: all(g.running_at for g in w.gangs.values()))
        assert watch.half_started() == []
        assert all(i.end for g in watch.partial().values() for i in g)
        assert watch.relists >= 2
    assert overbooked(c.admin) == {}


def test_native_gangs(make_cluster):
    """With the gates on, the default scheduler starts a gang as a whole or not at all."""
    c = make_cluster("native", gang=True, node_list=[{"name": "n", "count": 3, "cpu": 4}])
    for name, size in (("small", 3), ("large", 4)):
        c.admin.create(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
            }
        )
    c.admin.create_many(gang("large", 4, cpu=4, run=600, schedulingGroup={"podGroupName": "large"}))
    time.sleep(2)
    assert not [p for p in c.admin.list("pods", "default") if p["spec"].get("nodeName")]
    pods = c.admin.create_many(gang("small", 3, cpu=4, run=600, schedulingGroup={"podGroupName": "small"}))
    assert pods[0]["spec"]["schedulingGroup"] == {"podGroupName": "small"}
    wait_phase(c.admin, [p["metadata"]["name"] for p in pods], "Running")
    assert not [p for p in c.admin.list("pods", "default", labels="scheduling.x-k8s.io/pod-group=large")
                if p["spec"].get("nodeName")]


def test_native_gangs_are_off_by_default(cluster):
    with pytest.raises(LookupError):
        cluster.admin.resource("PodGroup", "scheduling.k8s.io/v1alpha2")


def test_thousands_in_seconds(make_cluster):
    """2000 nodes and 10 000 pods behind the server's back; clients see them as any others."""
    c = make_cluster("many", node_list=[], without=["controller-manager", "scheduler", "kwok"])
    version = c.admin.list_full("nodes")["metadata"]["resourceVersion"]
    start = time.monotonic()
    shapes = nodes.load([{"name": "n", "count": 2000, "cpu": 64}])
    pods = (
        pod(f"p-{i}", node=f"n-{i % 2000:04d}", run=600, labels={"batch": str(i % 10)}) for i in range(10000)
    )
    assert seed(c, shapes) == 2000 and seed(c, pods) == 10000
    assert time.monotonic() - start < 150, "a few seconds on an idle machine"
    seen = 0
    for kind, _ in c.admin.watch("nodes", version=version, timeout=60):
        assert kind == "ADDED"
        seen += 1
        if seen == 2000:
            break
    until(lambda: c.admin.list_full("pods", limit=1)["metadata"].get("remainingItemCount") == 9999)
    listed = c.admin.list("pods", "default", labels="batch=3")
    assert len(listed) == 1000
    assert listed[0]["metadata"]["uid"] and listed[0]["spec"]["dnsPolicy"] == "ClusterFirst"  # defaults filled in
    used = usage(c.admin)["n-0007"]
    assert (used["cpu"], used["pods"]) == ((5, 64), (5, 110))
    assert overbooked(c.admin) == {}
    # They are real: they can be changed and deleted.
    c.admin.patch("pods", "p-7", {"metadata": {"labels": {"changed": "yes"}}})
    c.admin.delete("pods", "p-8", grace=0)
    assert c.admin.get("pods", "p-7")["metadata"]["labels"]["changed"] == "yes"
    with pytest.raises(ApiError):
        c.admin.get("pods", "p-8")


def test_books():
    assert [quantity(q) for q in ("1500m", "3Gi", "1e3", "0.5", "2E", "100n")] == [
        quantity("1.5"), 3 * 2**30, 1000, quantity("500m"), 2 * 10**18, quantity("0.0000001"),
    ]
    p = pod("x", cpu="500m", memory="1Gi")
    p["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "2"}}},
    ]
    p["spec"]["overhead"] = {"memory": "1Mi"}
    assert requests(p) == {"cpu": quantity("2.25"), "memory": 2**30 + 2**20, "pods": 1}

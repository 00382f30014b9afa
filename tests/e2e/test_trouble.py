"""Nodes that go, kubelets that refuse, an API server that dies, work that is deleted: the books stay right."""

import time

import pytest

from cluster import work
from cluster.audit import Audit
from cluster.gangs import GangWatch

from .conftest import until

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 4, "per": {"rack": 3}}]}


@pytest.fixture(scope="module")
def sluiced(module_cluster, tmp_path_factory):
    from .daemon import Sluiced

    settings = {"status": {"interval": "1s", "audit": "1s"}, "jobs": {"holdVacant": "5s"}}
    store = tmp_path_factory.mktemp("store") / "sluice.db"
    with Sluiced(module_cluster, settings, store=str(store)) as d:
        yield d
        assert d.process.poll() is None, d.tail(40)
        assert "plan and cluster disagree" not in d.log.read_text()


def all_free(sluiced):
    """Check that the plan holds no room on any node."""
    return all(r["free"] == r["total"] for n in sluiced.nodes().values() for r in n["resources"].values())


def placed(cluster, space, prefix=""):
    return {
        p["metadata"]["name"]: p["spec"]["nodeName"]
        for p in cluster.admin.list("pods", space)
        if p["spec"].get("nodeName") and p["metadata"]["name"].startswith(prefix)
        and p["status"].get("phase") in ("Pending", "Running")
    }  # fmt: skip


@pytest.fixture
def empty(sluiced, module_cluster, space):
    """After the test everything is deleted, and nothing may be left in the books."""
    yield space
    for obj in module_cluster.admin.list("jobs", space):
        module_cluster.admin.delete("jobs", obj["metadata"]["name"], space, propagation="Background", missing_ok=True)
    module_cluster.admin.delete_all("pods", space, grace=0)
    until(lambda: all_free(sluiced), message="no share is leaked")
    until(lambda: not sluiced.jobs(space), message="no job is left")


def test_node_removed(sluiced, module_cluster, empty):
    admin = module_cluster.admin
    admin.create(work.job("lost", pods=3, cpu=4, namespace=empty, run=300, scheduler="sluice", backoff=6))
    until(lambda: len(placed(module_cluster, empty)) == 3)
    gone = sorted(placed(module_cluster, empty).values())[0]
    module_cluster.remove_node(gone)
    try:
        until(lambda: gone not in sluiced.nodes())
        # Kubernetes collects pods of vanished nodes at its leisure; here the test does it.
        for name, node in placed(module_cluster, empty).items():
            if node == gone:
                admin.delete("pods", name, empty, grace=0, missing_ok=True)
        until(lambda: len(p := placed(module_cluster, empty)) == 3 and gone not in p.values())
    finally:
        module_cluster.add_nodes({"name": "again", "count": 1, "cpu": 4})


def test_kubelet_refuses(sluiced, module_cluster, empty):
    admin = module_cluster.admin
    job = work.job("refused", pods=2, cpu=2, namespace=empty, run=300, scheduler="sluice", backoff=1,
                   annotations={"sluice.test/refuse": "OutOfcpu"})  # fmt: skip
    admin.create(job)
    failed = lambda: [p for p in admin.list("pods", empty) if p["status"].get("reason") == "OutOfcpu"]  # noqa: E731
    until(failed, message="the kubelet refuses")
    until(lambda: all_free(sluiced), message="what was refused holds nothing")
    admin.create(work.pod("next", cpu=4, namespace=empty, run=300, scheduler="sluice"))
    until(lambda: placed(module_cluster, empty, "next"))


def test_room_taken_by_others(sluiced, module_cluster, empty):
    """A default-scheduler pod takes what the gang was promised: the plan moves, nothing is overbooked."""
    admin = module_cluster.admin
    for p in work.gang("first", 6, cpu=3, namespace=empty, run=600, scheduler="sluice"):
        admin.create(p)
    until(lambda: len(placed(module_cluster, empty, "first")) == 6)
    for p in work.gang("second", 6, cpu=3, namespace=empty, run=600, scheduler="sluice"):
        admin.create(p)
    for i in range(3):
        admin.create(work.pod(f"other-{i}", cpu=1, namespace=empty, run=600))
    until(lambda: len(placed(module_cluster, empty, "other")) == 3)
    until(lambda: sluiced.jobs(empty)["second"]["state"] == "waiting")
    # One member goes: its room cannot start the second gang, but another scheduler takes it.
    admin.delete("pods", "first-0", empty, grace=0)
    admin.create(work.pod("late", cpu=2, namespace=empty, run=600))
    until(lambda: placed(module_cluster, empty, "late"))
    for i in range(1, 6):
        admin.delete("pods", f"first-{i}", empty, grace=0)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert not placed(module_cluster, empty, "second"), "one of its six nodes is taken"
        time.sleep(0.1)
    admin.delete("pods", "late", empty, grace=0)
    until(lambda: len(placed(module_cluster, empty, "second")) == 6)
    assert not work.overbooked(admin)


def test_resize_cordon_drain(sluiced, module_cluster, empty):
    admin = module_cluster.admin
    names = sorted(sluiced.nodes())
    for n in names[1:]:
        module_cluster.cordon(n)
    try:
        until(lambda: sum(n["state"] == "cordoned" for n in sluiced.nodes().values()) == len(names) - 1)
        admin.create(work.pod("wide", cpu=6, namespace=empty, run=300, scheduler="sluice"))
        until(lambda: sluiced.jobs(empty).get("wide", {}).get("state") == "never")
        module_cluster.resize_node(names[0], cpu=8)
        until(lambda: placed(module_cluster, empty, "wide"))
        status, text = sluiced.request("POST", f"/v1/nodes/{names[0]}/drain")
        assert status == 200, text
        admin.create(work.pod("small", cpu=1, namespace=empty, run=300, scheduler="sluice"))
        time.sleep(1.5)
        assert not placed(module_cluster, empty, "small"), "a drained node takes nothing new"
        assert placed(module_cluster, empty, "wide"), "what runs there runs on"
        assert sluiced.request("POST", f"/v1/nodes/{names[0]}/undrain")[0] == 200
        until(lambda: placed(module_cluster, empty, "small"))
    finally:
        module_cluster.resize_node(names[0], cpu=4)
        for n in names[1:]:
            module_cluster.cordon(n, False)


def test_cancel_hold_release(sluiced, module_cluster, empty):
    admin = module_cluster.admin
    for p in work.gang("full", 6, cpu=4, namespace=empty, run=300, scheduler="sluice"):
        admin.create(p)
    until(lambda: len(placed(module_cluster, empty, "full")) == 6)
    for p in work.gang("wait", 2, cpu=4, namespace=empty, run=300, scheduler="sluice"):
        admin.create(p)
    until(lambda: sluiced.jobs(empty).get("wait", {}).get("state") == "waiting")
    assert sluiced.request("POST", f"/v1/jobs/{empty}/wait/hold")[0] == 200
    admin.delete_all("pods", empty, labels="scheduling.x-k8s.io/pod-group=full", grace=0)
    time.sleep(1.5)
    assert not placed(module_cluster, empty, "wait"), "held"
    assert sluiced.request("POST", f"/v1/jobs/{empty}/wait/release")[0] == 200
    until(lambda: len(placed(module_cluster, empty, "wait")) == 2)
    assert sluiced.request("POST", f"/v1/jobs/{empty}/nobody/hold")[0] == 404


def test_api_server_dies(sluiced, module_cluster, empty):
    admin = module_cluster.admin
    with GangWatch(admin, empty) as watch:
        for g in range(6):
            for p in work.gang(f"g{g}", 3, cpu=4, namespace=empty, run=1, scheduler="sluice"):
                admin.create(p)
            if g == 2:
                module_cluster.kill("apiserver")
                module_cluster.start("apiserver")
                # A simulated kubelet whose write failed just then tries again ever later; a new one looks at once.
                module_cluster.restart("kwok")
        watch.wait(lambda w: len(w.finished()) == 6)
        assert not watch.half_started()
    assert not Audit(module_cluster.audit_log).bound_twice(empty)

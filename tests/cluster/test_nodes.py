"""Nodes change, components die and come back."""

import time
from contextlib import suppress
from threading import Thread

import pytest

from . import nodes
from .api import Api, ApiError
from .cluster import COMPONENTS
from .process import process_state
from .proxy import Proxy
from .seed import compact
from .work import condition, job, phase_is, pod, wait_phase


def test_node_file():
    got = nodes.load(
        [
            {"name": "g", "count": 3, "first": 7, "cpu": "3920m", "memory": "29085832Ki", "gpu": 4,
             "per": {"rack": 2, "zone": 8}, "labels": {"a": "b"}, "taints": ["k=v:NoSchedule", "x:NoExecute"],
             "reserved": {"cpu": "3500m"}, "capacity": {"vpc.amazonaws.com/efa": 1}},
            {"name": "head", "control-plane": True, "unschedulable": True},
        ]
    )
    assert [n["metadata"]["name"] for n in got] == ["g-007", "g-008", "g-009", "head"]
    first, head = got[0], got[3]
    assert first["status"]["capacity"] == {
        "cpu": "3920m", "memory": "29085832Ki", "pods": "110", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "4",
        "vpc.amazonaws.com/efa": "1",
    }
    assert first["status"]["allocatable"]["cpu"] == "3500m"
    assert [n["metadata"]["labels"].get(nodes.RACK) for n in got] == ["rack-3", "rack-4", "rack-4", None]
    assert [n["metadata"]["labels"].get(nodes.ZONE) for n in got] == ["zone-0", "zone-1", "zone-1", None]
    assert first["spec"]["taints"] == [
        {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"},
    ]
    assert head["metadata"]["labels"][nodes.CONTROL_PLANE] == ""
    assert head["spec"] == {
        "taints": [{"key": nodes.CONTROL_PLANE, "effect": "NoSchedule"}], "unschedulable": True,
    }
    for bad, message in (
        ([{"count": 2}], "without a name"),
        ([{"name": "x", "per": {"row": 2}}], "'row' is not one of zone, block, rack"),
        ([{"name": "x", "taints": ["k=v:Sometimes"]}], "NoSchedule"),
    ):
        with pytest.raises(ValueError, match=message):
            nodes.load(bad)


CLUSTER = {
    "node_list": [{"name": "n", "count": 4, "cpu": 4, "per": {"rack": 2}}, {"name": "head", "control-plane": True}]
}


@pytest.fixture(scope="module")
def lab(module_cluster):
    """A cluster whose nodes and components the tests may treat badly."""
    return module_cluster


def runs_on(c, name, node, **spec):
    """A pod that fits only `node` runs there, perhaps not at the first attempt."""
    c.admin.create(pod(name, run=600, nodeSelector={"kubernetes.io/hostname": node}, **spec))
    c.admin.wait("pods", name, phase_is("Running"))
    c.admin.delete("pods", name, grace=0)
    return True


def kept_off(c, name, node, **spec):
    """The scheduler finds no place for such a pod, once it has heard of the change."""
    for attempt in range(60):
        c.admin.create(pod(f"{name}-{attempt}", run=600, nodeSelector={"kubernetes.io/hostname": node}, **spec))
        p = c.admin.wait("pods", f"{name}-{attempt}", lambda p: condition(p, "PodScheduled").get("status"))
        c.admin.delete("pods", f"{name}-{attempt}", grace=0)
        if condition(p, "PodScheduled")["status"] == "False":
            return condition(p, "PodScheduled")["reason"] == "Unschedulable"
        time.sleep(0.5)
    return False


def test_node_cordoned_resized_tainted_labelled(lab):
    assert runs_on(lab, "a", "n-000", cpu=4)
    assert kept_off(lab, "head", "head")
    lab.cordon("n-000")
    assert kept_off(lab, "b", "n-000")
    lab.cordon("n-000", False)
    lab.resize_node("n-000", cpu=2, gpu=1)
    assert kept_off(lab, "c", "n-000", cpu=4)
    assert runs_on(lab, "d", "n-000", cpu=2, gpu=1)
    lab.resize_node("n-000", cpu=4, gpu=None)
    assert kept_off(lab, "e", "n-000", gpu=1)
    lab.taint_node("n-000", "k=v:NoSchedule")
    assert kept_off(lab, "f", "n-000")
    lab.taint_node("n-000")
    lab.label_node("n-000", {"extra": "yes", nodes.RACK: None})
    labels = lab.admin.get("nodes", "n-000", None)["metadata"]["labels"]
    assert labels["extra"] == "yes" and nodes.RACK not in labels
    assert runs_on(lab, "g", "n-000", cpu=4)


def taints_of(node):
    return {(t["key"], t["effect"]) for t in node["spec"].get("taints", [])}


def test_node_not_ready_and_back(lab):
    lab.set_ready("n-001", False)
    want = ("node.kubernetes.io/not-ready", "NoSchedule")
    lab.admin.wait("nodes", "n-001", lambda n: want in taints_of(n), None)
    assert kept_off(lab, "h", "n-001")
    lab.set_ready("n-001")
    lab.admin.wait("nodes", "n-001", lambda n: not taints_of(n), None)
    assert runs_on(lab, "i", "n-001")


def test_node_dies_and_comes_back(lab):
    """Pods of a dead node neither end nor go away; they do when the node is back."""
    api = lab.admin
    tolerant = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 600}]
    on = {"nodeSelector": {"kubernetes.io/hostname": "n-002"}, "tolerations": tolerant}
    api.create(pod("short", run=600, **on))
    api.create(pod("doomed", run=600, **on))
    wait_phase(api, ["short", "doomed"], "Running")
    lab.kill_node("n-002")
    dead = ("node.kubernetes.io/unreachable", "NoExecute")
    api.wait("nodes", "n-002", lambda n: dead in taints_of(n), None)
    api.delete("pods", "doomed")
    api.patch("pods", "short", {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}})
    time.sleep(3)
    assert api.get("pods", "short")["status"]["phase"] == "Running"
    assert api.get("pods", "doomed")["metadata"]["deletionTimestamp"]
    lab.revive_node("n-002")
    api.wait("pods", "short", phase_is("Succeeded"))
    api.wait("pods", "doomed", lambda p: p is None)
    api.wait("nodes", "n-002", lambda n: not taints_of(n), None)
    api.delete("pods", "short", grace=0)


def test_node_added_and_removed(lab):
    assert lab.add_nodes({"name": "late", "count": 2, "cpu": 2}) == ["late-000", "late-001"]
    assert runs_on(lab, "j", "late-001", cpu=2)
    lab.admin.create(pod("orphan", run=600, nodeSelector={"kubernetes.io/hostname": "late-000"}))
    lab.admin.wait("pods", "orphan", phase_is("Running"))
    for name in ("late-000", "late-001"):
        lab.remove_node(name)
    assert not [n for n in lab.admin.list("nodes") if n["metadata"]["name"].startswith("late")]
    lab.admin.delete("pods", "orphan", grace=0)
    # A node made by hand, without a status, becomes ready.
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare", "labels": {nodes.SIMULATED: "true"}}}
    lab.admin.create(bare)
    lab.admin.wait("nodes", "bare", lambda n: condition(n, "Ready").get("status") == "True", None)
    lab.remove_node("bare")


@pytest.mark.parametrize("component", COMPONENTS)
def test_component_killed_and_restarted(lab, component):
    before = lab.processes[component].pid
    lab.kill(component)
    assert component not in lab.running() and process_state(before) is None
    lab.start(component)
    assert lab.processes[component].pid not in (None, before)
    name = f"after-{component}"
    lab.admin.create(job(name, pods=2, run=0))
    lab.admin.wait("jobs", name, lambda j: j["status"].get("succeeded") == 2)
    lab.admin.delete("jobs", name, propagation="Background")


def test_nothing_is_lost_when_etcd_is_killed(lab):
    made = lab.admin.create_many([pod(f"kept-{i}", run=600) for i in range(20)])
    lab.restart("etcd")
    lab.restart("scheduler", hard=False)
    lab.restart("apiserver")
    uids = {p["metadata"]["uid"] for p in lab.admin.list("pods", "default")}
    assert {p["metadata"]["uid"] for p in made} <= uids
    lab.admin.delete_all("pods", "default", grace=0)


def test_paused_server_answers_nothing(lab):
    impatient = Api.from_kubeconfig(lab.kubeconfig, timeout=2)
    assert lab.admin.request("GET", "/readyz") == "ok"
    lab.processes["kube-apiserver"].pause()
    try:
        with pytest.raises(OSError):
            impatient.request("GET", "/readyz")
    finally:
        lab.processes["kube-apiserver"].resume()
    lab.wait_ready()


def test_compaction_ends_old_watches(lab):
    old = lab.admin.list_full("pods")["metadata"]["resourceVersion"]
    lab.admin.create(pod("noise", run=0))
    lab.admin.wait("pods", "noise", phase_is("Succeeded"))
    compact(lab)
    lab.restart("apiserver")  # the server's own memory of events goes with it
    with pytest.raises(ApiError) as e:
        for _ in lab.admin.watch("pods", version=old, timeout=60):
            pass
    assert e.value.status == 410
    lab.admin.delete("pods", "noise", grace=0)


def test_wire_is_cut_frozen_and_refused(lab):
    with Proxy(lab) as wire:
        api = Api.from_kubeconfig(wire.kubeconfig("admin"))
        impatient = Api.from_kubeconfig(wire.kubeconfig("admin"), timeout=2)
        assert api.request("GET", "/readyz") == "ok" and wire.opened == 1
        version = api.list_full("pods")["metadata"]["resourceVersion"]
        watch = api.watch("pods", version=version, timeout=120)
        lab.admin.create(pod("seen", run=600))
        assert next(watch)[1]["metadata"]["name"] == "seen"
        assert wire.cut() >= 1
        start = time.monotonic()
        with suppress(OSError):  # with an error or without, it ends long before its time
            for _ in watch:
                pass
        assert time.monotonic() - start < 60
        assert api.request("GET", "/readyz") == "ok"  # a new connection
        wire.freeze()
        with pytest.raises(OSError):
            impatient.request("GET", "/readyz")
        wire.thaw()
        assert api.request("GET", "/readyz") == "ok"
        wire.refuse()
        wire.cut()
        with pytest.raises(OSError):
            api.request("GET", "/readyz")
        wire.accept()
        wire.delay = 0.2
        start = time.monotonic()
        assert api.request("GET", "/readyz") == "ok"
        assert time.monotonic() - start > 0.4
        path = wire.kubeconfig("admin")
    assert not path.exists()
    lab.admin.delete("pods", "seen", grace=0)


def test_simulation_survives_cut_wires(make_cluster):
    """kwok's connections are reset while it works: no pod is forgotten, whether an event or a write was lost."""
    c = make_cluster("cut", node_list=[{"name": "n", "count": 5, "cpu": 64}], without=["kwok"])
    names = [f"p-{i}" for i in range(90)]
    with Proxy(c) as wire:
        c.args["kwok"] = [f"--kubeconfig={wire.kubeconfig('kwok')}"]
        c.start("kwok")
        cuts = 0
        for batch in range(3):
            done = Thread(target=c.admin.create_many, args=([pod(n, cpu="100m", run=1) for n in names[batch::3]],))
            done.start()
            while done.is_alive():
                time.sleep(0.1)
                cuts += wire.cut()
            time.sleep(2)  # time to connect again
        assert cuts > 3
        wait_phase(c.admin, names, "Succeeded")
        c.kill("kwok")

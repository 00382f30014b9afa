"""The cluster itself: does it start, simulate, survive and go as docs/cluster.md says?"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import nodes
from .api import Api, ApiError
from .audit import Audit
from .cluster import COMPONENTS, Cluster
from .gangs import GangWatch
from .process import process_state
from .seed import compact, seed
from .work import gang, job, overbooked, pod, quantity, requests, usage, wait_phase

SMALL = [{"name": "n", "count": 2, "cpu": 4}]


def phase_is(phase):
    return lambda p: p is not None and p["status"].get("phase") == phase


def condition(obj, kind):
    return next((c for c in obj["status"].get("conditions", []) if c["type"] == kind), {})


# -- starting and ending -----------------------------------------------------------------------


def listeners(pids):
    """(address, port) of every TCP socket in state LISTEN that belongs to one of the processes."""
    inodes = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            try:
                inodes.add(os.readlink(fd))
            except OSError:
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            f = line.split()
            if f[3] == "0A" and f"socket:[{f[9]}]" in inodes:
                address, port = f[1].split(":")
                found.add((address, int(port, 16)))
    return found


def test_starts_fast_on_loopback_and_leaves_nothing(tmp_path):
    start = time.monotonic()
    c = Cluster("life", root=tmp_path / "clusters", node_list=SMALL)
    c.up()
    took = time.monotonic() - start
    try:
        assert took < 30
        assert c.running() == list(COMPONENTS)
        pids = [c.processes[x].pid for x in COMPONENTS]
        # 0100007F is 127.0.0.1 as the kernel prints it
        assert listeners(pids) == {("0100007F", port) for port in c.ports.values()}
        c.admin.create(pod("first", run=0))
        c.admin.wait("pods", "first", phase_is("Succeeded"), timeout=10)
        with pytest.raises(RuntimeError, match="exists already"):
            Cluster("life", root=tmp_path / "clusters").up()
    finally:
        c.down()
    assert not (tmp_path / "clusters").exists()
    assert not [p for p in pids if process_state(p)]


def test_two_at_once_and_the_command(cluster, tmp_path):
    run = [sys.executable, "-m", "cluster"]
    env = {**os.environ, "SLUICE_CLUSTERS": str(tmp_path)}
    nodes_file = tmp_path / "nodes.yaml"
    nodes_file.write_text("- {name: big, count: 3, cpu: 64}\n")

    def command(*args):
        return subprocess.run([*run, *args], env=env, capture_output=True, text=True)

    try:
        done = command("up", "--name", "other", "--nodes", str(nodes_file), "--without", "scheduler")
        assert done.returncode == 0, done.stderr
        kubeconfig = f"{tmp_path}/other/admin.kubeconfig"
        assert f"export KUBECONFIG={kubeconfig}" in done.stdout
        other = Api.from_kubeconfig(kubeconfig)
        assert other.server != cluster.server
        assert [n["metadata"]["name"] for n in other.list("nodes")] == ["big-000", "big-001", "big-002"]
        assert not [n for n in cluster.admin.list("nodes") if n["metadata"]["name"].startswith("big")]
        assert "4/4 running" in command("list").stdout
        again = command("up", "--name", "other")
        assert again.returncode == 0 and "runs already" in again.stderr
        assert command("kill", "kwok", "--name", "other").returncode == 0
        assert "3/4 running" in command("list").stdout
    finally:
        command("down", "--name", "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nodes.yaml"]
    assert "no cluster 'other'" in command("down", "--name", "other").stderr
    nodes_file.write_text("- {name: big, cpus: 64}\n")
    refused = command("up", "--name", "other", "--nodes", str(nodes_file))
    assert refused.returncode != 0 and "unknown key ['cpus']" in refused.stderr


def test_ends_with_its_owner(tmp_path):
    """A test run that is killed leaves no cluster behind."""
    script = (
        "import sys, time\nfrom cluster import Cluster\n"
        f"c = Cluster('owned', root={str(tmp_path / 'c')!r}, node_list=[]); c.up(); c.own()\n"
        "print(*[p.pid for p in c.processes.values()], flush=True)\ntime.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = owner.stdout.readline().split()
    assert len(pids) == len(COMPONENTS)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    end = time.monotonic() + 20
    while (tmp_path / "c").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not (tmp_path / "c").exists()
    assert not [p for p in pids if process_state(p)]


def test_another_processes_number_is_not_ours(tmp_path):
    c = Cluster("stale", root=tmp_path)
    c.folder.mkdir()
    c.processes["etcd"].pid_file.write_text(f"{os.getpid()} 12345\n")
    assert c.running() == []
    c.down()  # does not end this very process


def test_taken_port_is_survived(tmp_path, monkeypatch):
    """Somebody listens on a chosen port before the server does: it starts on others."""
    from . import cluster as module

    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    real, calls = module.free_ports, []

    def ports(count):
        calls.append(count)
        return [taken.getsockname()[1], *real(count - 1)] if len(calls) == 1 else real(count)

    monkeypatch.setattr(module, "free_ports", ports)
    with taken, Cluster("busy", root=tmp_path, node_list=[], without=COMPONENTS[2:]) as c:
        assert len(calls) == 2
        assert c.admin.list("namespaces")


# -- pods --------------------------------------------------------------------------------------


def test_pod_runs_as_long_as_it_says(cluster, namespace):
    cluster.admin.create(pod("timed", run=2, namespace=namespace))
    cluster.admin.wait("pods", "timed", phase_is("Running"), namespace)
    begun = time.monotonic()
    # A change in between must not start the time anew.
    time.sleep(1)
    cluster.admin.patch("pods", "timed", {"metadata": {"labels": {"x": "y"}}}, namespace)
    p = cluster.admin.wait("pods", "timed", phase_is("Succeeded"), namespace)
    assert 1.5 < time.monotonic() - begun < 2.8
    state = p["status"]["containerStatuses"][0]["state"]
    assert list(state) == ["terminated"] and state["terminated"]["exitCode"] == 0
    assert condition(p, "Ready")["status"] == "False"
    assert condition(p, "PodScheduled")["status"] == "True"
    assert p["spec"]["nodeName"].startswith("node-")


def test_job_completes_and_server_runs_on(cluster, namespace):
    cluster.admin.create(job("work", pods=4, namespace=namespace))
    cluster.admin.create(pod("server", namespace=namespace, restart="Always"))
    cluster.admin.wait("jobs", "work", lambda j: j["status"].get("succeeded") == 4, namespace)
    p = cluster.admin.wait("pods", "server", phase_is("Running"), namespace)
    assert condition(p, "Ready")["status"] == "True" and p["status"]["podIP"]
    time.sleep(1.5)
    assert cluster.admin.get("pods", "server", namespace)["status"]["phase"] == "Running"


def test_pod_fails(cluster, namespace):
    note = {"sluice.test/exit-code": "3"}
    cluster.admin.create(job("bad", pods=1, namespace=namespace, run=0, annotations=note))
    j = cluster.admin.wait("jobs", "bad", lambda j: condition(j, "Failed").get("status") == "True", namespace)
    assert condition(j, "Failed")["reason"] == "BackoffLimitExceeded"
    (p,) = cluster.admin.list("pods", namespace, labels="job-name=bad")
    assert p["status"]["phase"] == "Failed"
    assert p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_kubelet_refuses(cluster, namespace):
    cluster.admin.create(pod("refused", namespace=namespace, annotations={"sluice.test/refuse": "OutOfcpu"}))
    p = cluster.admin.wait("pods", "refused", phase_is("Failed"), namespace)
    assert p["status"]["reason"] == "OutOfcpu" and "containerStatuses" not in p["status"]


def test_deadline_ends_a_pod(cluster, namespace):
    cluster.admin.create(pod("late", namespace=namespace, run=60, activeDeadlineSeconds=1))
    cluster.admin.create(pod("server", namespace=namespace, restart="Always", activeDeadlineSeconds=1))
    cluster.admin.create(pod("early", namespace=namespace, run=0.2, activeDeadlineSeconds=30))
    for name in ("late", "server"):
        p = cluster.admin.wait("pods", name, phase_is("Failed"), namespace, timeout=10)
        assert p["status"]["reason"] == "DeadlineExceeded"
    cluster.admin.wait("pods", "early", phase_is("Succeeded"), namespace, timeout=10)


def test_pods_that_hang(cluster, namespace):
    api = cluster.admin
    for what, run in (("start", 0), ("end", 0), ("stop", 600)):
        api.create(pod(f"hang-{what}", namespace=namespace, run=run, annotations={"sluice.test/hang": what}))
    api.create(pod("slow", namespace=namespace, run=60, annotations={"sluice.test/start-seconds": "1.5",
                                                                     "sluice.test/stop-seconds": "1.5"}))  # fmt: skip
    wait_phase(api, ["hang-end", "hang-stop"], "Running", namespace)
    api.wait("pods", "slow", lambda p: "nodeName" in p["spec"], namespace)
    assert api.get("pods", "slow", namespace)["status"]["phase"] == "Pending"
    api.wait("pods", "slow", phase_is("Running"), namespace)
    p = api.get("pods", "hang-start", namespace)
    assert p["status"]["phase"] == "Pending" and p["spec"]["nodeName"]
    assert api.get("pods", "hang-end", namespace)["status"]["phase"] == "Running"
    # Deletion: at once, after its time, never but by force.
    for name in ("hang-start", "hang-end", "hang-stop", "slow"):
        api.delete("pods", name, namespace)
    deleted = time.monotonic()
    for name in ("hang-start", "hang-end"):
        api.wait("pods", name, lambda p: p is None, namespace, timeout=5)
    api.wait("pods", "slow", lambda p: p is None, namespace, timeout=10)
    assert 1.2 < time.monotonic() - deleted < 5
    assert api.get("pods", "hang-stop", namespace)["metadata"]["deletionTimestamp"]
    api.delete("pods", "hang-stop", namespace, grace=0)
    api.wait("pods", "hang-stop", lambda p: p is None, namespace, timeout=5)


def test_deleted_pod_of_a_job_counts_as_failed(cluster, namespace):
    api = cluster.admin
    api.create(job("long", pods=1, namespace=namespace, run=600, backoff=5))
    api.wait("jobs", "long", lambda j: j["status"].get("ready") == 1, namespace)
    (p,) = api.list("pods", namespace)
    api.delete("pods", p["metadata"]["name"], namespace)
    api.wait("pods", p["metadata"]["name"], lambda p: p is None, namespace, timeout=10)
    api.wait("jobs", "long", lambda j: j["status"].get("failed") == 1, namespace)


# -- nodes -------------------------------------------------------------------------------------


def test_node_file():
    got = nodes.load(
        [
            {"name": "g", "count": 3, "first": 7, "cpu": "3920m", "memory": "29085832Ki", "gpu": 4,
             "per": {"rack": 2, "zone": 8}, "labels": {"a": "b"}, "taints": ["k=v:NoSchedule", "x:NoExecute"],
             "reserved": {"cpu": "3500m"}, "capacity": {"vpc.amazonaws.com/efa": 1}},
            {"name": "head", "control-plane": True, "unschedulable": True},
        ]
    )  # fmt: skip
    assert [n["metadata"]["name"] for n in got] == ["g-007", "g-008", "g-009", "head"]
    first, head = got[0], got[3]
    assert first["status"]["capacity"] == {
        "cpu": "3920m", "memory": "29085832Ki", "pods": "110", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "4",
        "vpc.amazonaws.com/efa": "1",
    }  # fmt: skip
    assert first["status"]["allocatable"]["cpu"] == "3500m"
    assert [n["metadata"]["labels"].get(nodes.RACK) for n in got] == ["rack-3", "rack-4", "rack-4", None]
    assert [n["metadata"]["labels"].get(nodes.ZONE) for n in got] == ["zone-0", "zone-1", "zone-1", None]
    assert first["spec"]["taints"] == [
        {"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"},
    ]  # fmt: skip
    assert head["metadata"]["labels"][nodes.CONTROL_PLANE] == ""
    assert head["spec"] == {
        "taints": [{"key": nodes.CONTROL_PLANE, "effect": "NoSchedule"}], "unschedulable": True,
    }  # fmt: skip
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
    for attempt in range(5):
        c.admin.create(pod(f"{name}-{attempt}", run=600, nodeSelector={"kubernetes.io/hostname": node}, **spec))
        p = c.admin.wait("pods", f"{name}-{attempt}", lambda p: condition(p, "PodScheduled").get("status"))
        c.admin.delete("pods", f"{name}-{attempt}", grace=0)
        if condition(p, "PodScheduled")["status"] == "False":
            return condition(p, "PodScheduled")["reason"] == "Unschedulable"
        time.sleep(0.2)
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
    lab.admin.wait("nodes", "n-001", lambda n: want in taints_of(n), None, timeout=10)
    assert kept_off(lab, "h", "n-001")
    lab.set_ready("n-001")
    lab.admin.wait("nodes", "n-001", lambda n: not taints_of(n), None, timeout=10)
    assert runs_on(lab, "i", "n-001")


def test_node_dies_and_comes_back(lab):
    """Pods of a dead node neither end nor go away; they do when the node is back."""
    api = lab.admin
    tolerant = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
                 "tolerationSeconds": 600}]  # fmt: skip
    on = {"nodeSelector": {"kubernetes.io/hostname": "n-002"}, "tolerations": tolerant}
    api.create(pod("short", run=3, **on))
    api.create(pod("doomed", run=600, **on))
    wait_phase(api, ["short", "doomed"], "Running")
    lab.kill_node("n-002")
    dead = ("node.kubernetes.io/unreachable", "NoExecute")
    api.wait("nodes", "n-002", lambda n: dead in taints_of(n), None, timeout=10)
    api.delete("pods", "doomed")
    time.sleep(4)
    assert api.get("pods", "short")["status"]["phase"] == "Running"
    assert api.get("pods", "doomed")["metadata"]["deletionTimestamp"]
    lab.revive_node("n-002")
    api.wait("pods", "short", phase_is("Succeeded"), timeout=10)
    api.wait("pods", "doomed", lambda p: p is None, timeout=10)
    api.wait("nodes", "n-002", lambda n: not taints_of(n), None, timeout=10)
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


# -- components --------------------------------------------------------------------------------


@pytest.mark.parametrize("component", COMPONENTS)
def test_component_killed_and_restarted(lab, component):
    before = lab.processes[component].pid
    lab.kill(component)
    assert component not in lab.running() and process_state(before) is None
    lab.start(component)
    assert lab.processes[component].pid not in (None, before)
    name = f"after-{component}"
    lab.admin.create(job(name, pods=2, run=0))
    lab.admin.wait("jobs", name, lambda j: j["status"].get("succeeded") == 2, timeout=60)
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
    impatient = Api.from_kubeconfig(lab.kubeconfig, timeout=1)
    assert impatient.request("GET", "/readyz") == "ok"
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
        for _ in lab.admin.watch("pods", version=old, timeout=5):
            pass
    assert e.value.status == 410
    lab.admin.delete("pods", "noise", grace=0)


# -- audit -------------------------------------------------------------------------------------


def test_audit_counts_bindings(cluster, namespace, audit):
    names = [f"p{i}" for i in range(10)]
    cluster.admin.create_many([pod(n, run=600, namespace=namespace) for n in names])
    cluster.admin.create(pod("ours", scheduler="sluice", run=600, namespace=namespace))
    wait_phase(cluster.admin, names, "Running", namespace)
    cluster.sluice.bind("ours", "node-003", namespace)
    with pytest.raises(ApiError) as e:
        cluster.sluice.bind("ours", "node-004", namespace)
    assert e.value.status == 409
    audit.wait(lambda a: len(a.bindings(namespace)) == 12)
    assert audit.bound(namespace) == {(namespace, n): 1 for n in [*names, "ours"]}
    assert audit.bound_twice(namespace) == {}
    user = "system:serviceaccount:sluice-system:sluice"
    ours = audit.bindings(namespace, user)
    assert [(b.pod, b.node, b.ok) for b in ours] == [("ours", "node-003", True), ("ours", "node-004", False)]
    assert {b.user for b in audit.bindings(namespace)} == {user, "system:kube-scheduler"}
    where = {p["metadata"]["name"]: p["spec"]["nodeName"] for p in cluster.admin.list("pods", namespace)}
    assert {b.pod: b.node for b in audit.bindings(namespace) if b.ok} == where
    cluster.sluice.list("pods", namespace)
    audit.wait(lambda a: a.requests(user)["list", "pods", 200] >= 1)
    assert audit.requests(user)["create", "pods/binding", 201] >= 1
    assert audit.requests("system:kube-scheduler")["create", "pods/binding", 201] >= 10


# -- permissions -------------------------------------------------------------------------------


@pytest.mark.parametrize("config", ["sluice", "sluice-token"])
def test_second_user_is_who_it_says(cluster, config):
    api = Api.from_kubeconfig(cluster.folder / f"{config}.kubeconfig")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    who = api.create(review)["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:sluice-system:sluice"
    assert sorted(who["groups"]) == [
        "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:sluice-system",
    ]  # fmt: skip


def test_second_user_has_exactly_its_rules(cluster, namespace):
    """Allowed what deploy/rbac.yaml grants, refused what it must not do."""

    def may(verb, resource, group="", sub="", ns=namespace, name=""):
        attributes = {"verb": verb, "resource": resource, "group": group, "subresource": sub, "namespace": ns, "name": name}
        review = {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
            "spec": {"resourceAttributes": {k: v for k, v in attributes.items() if v}},
        }  # fmt: skip
        return cluster.sluice.create(review)["status"]["allowed"]

    home = "sluice-system"
    for allowed in (
        ("watch", "pods", "", "", ""), ("list", "nodes", "", "", ""), ("create", "pods", "", "binding"),
        ("patch", "pods"), ("patch", "pods", "", "status"), ("create", "pods", "", "eviction"),
        ("patch", "jobs", "batch"), ("patch", "statefulsets", "apps"), ("create", "events"),
        ("create", "events", "events.k8s.io"), ("update", "podgroups", "scheduling.x-k8s.io", "status"),
        ("create", "podgroups", "scheduling.sigs.k8s.io"), ("delete", "fluxjobs", "jobs.converged-computing.org"),
        ("update", "leases", "coordination.k8s.io", "", home), ("create", "secrets", "", "", home),
        ("create", "tokenreviews", "authentication.k8s.io", "", ""),
        ("patch", "mutatingwebhookconfigurations", "admissionregistration.k8s.io", "", "", "sluice"),
    ):  # fmt: skip
        assert may(*allowed), allowed
    for refused in (
        ("delete", "pods"), ("create", "pods"), ("delete", "jobs", "batch"), ("create", "jobs", "batch"),
        ("patch", "nodes", "", "", ""), ("delete", "nodes", "", "", ""), ("get", "secrets"), ("list", "secrets"),
        ("get", "secrets", "", "", "kube-system"), ("create", "pods", "", "exec"), ("get", "pods", "", "log"),
        ("update", "leases", "coordination.k8s.io", "", "kube-system"), ("patch", "namespaces", "", "", ""),
        ("create", "clusterrolebindings", "rbac.authorization.k8s.io", "", ""), ("impersonate", "users", "", "", ""),
        ("delete", "podgroups", "scheduling.x-k8s.io"), ("deletecollection", "pods"),
        ("patch", "mutatingwebhookconfigurations", "admissionregistration.k8s.io", "", "", "another"),
        ("create", "serviceaccounts", "", "token", home),
    ):  # fmt: skip
        assert not may(*refused), refused
    # And not only by its own account: the server refuses in earnest.
    cluster.admin.create(pod("mine", namespace=namespace, run=600))
    for call in (
        lambda: cluster.sluice.delete("pods", "mine", namespace),
        lambda: cluster.sluice.create(pod("new", namespace=namespace)),
        lambda: cluster.sluice.patch("nodes", "node-000", {"spec": {"unschedulable": True}}, None),
        lambda: cluster.sluice.list("secrets", "kube-system"),
    ):
        with pytest.raises(ApiError) as e:
            call()
        assert (e.value.status, e.value.reason) == (403, "Forbidden")


def test_strangers_are_turned_away(cluster):
    nobody = Api(cluster.server, cluster.pki / "ca.crt")
    with pytest.raises(ApiError) as e:
        nobody.request("GET", "/api/v1/pods")
    assert e.value.status == 403
    with pytest.raises(ApiError) as e:
        Api(cluster.server, cluster.pki / "ca.crt", token="made-up").request("GET", "/api/v1/pods")
    assert e.value.status == 401
    with pytest.raises(OSError, match="(?i)certificate"):
        Api(cluster.server).request("GET", "/readyz")  # its authority is not among the system's
    with pytest.raises((OSError, ApiError)):
        Api(f"https://127.0.0.1:{cluster.ports['etcd']}", cluster.pki / "ca.crt").request("GET", "/version")


# -- custom resources and gangs ----------------------------------------------------------------


def test_custom_resources(cluster, namespace):
    api = cluster.admin
    for group, has_status in (("scheduling.x-k8s.io", True), ("scheduling.sigs.k8s.io", False)):
        obj = {
            "apiVersion": f"{group}/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": namespace},
            "spec": {"minMember": 4, "scheduleTimeoutSeconds": 600, "minResources": {"cpu": 4, "memory": "1Gi"}},
        }  # fmt: skip
        api.create(obj)
        kind = f"podgroups.{group}"
        status = {"phase": "Running", "running": 4, "creationTime": "2026-01-02T03:04:05.678901Z"}
        api.patch(kind, "g", {"status": status}, namespace, subresource="status" if has_status else None)
        assert api.get(kind, "g", namespace)["status"] == status
        bad = {**obj, "metadata": {"name": "bad", "namespace": namespace}, "spec": {"minMember": "four"}}
        with pytest.raises(ApiError) as e:
            api.create(bad)
        assert e.value.status == 422
    flux = {
        "apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob",
        "metadata": {"name": "f", "namespace": namespace},
        "spec": {"jobspec": "version: 1", "type": 1, "nodes": 2, "duration": 60, "resources": {"nodes": ["a", "b"]}},
    }  # fmt: skip
    assert api.create(flux)["spec"] == flux["spec"]
    api.patch("fluxjobs", "f", {"status": {"submitStatus": "statusSubmit", "state": "Queued", "position": 3}}, namespace,
              subresource="status")  # fmt: skip
    table = cluster.kubectl("get", "fluxjobs", "-n", namespace).split()
    assert table[:5] == ["NAME", "STATE", "POSITION", "START", "NODES"] and table[6:9] == ["f", "Queued", "3"]
    assert "MINMEMBER" in cluster.kubectl("get", "podgroups.scheduling.x-k8s.io", "-n", namespace)


def test_gang_watch_sees_the_default_scheduler_clog(make_cluster):
    """Two gangs of three whole nodes on four nodes: the default scheduler half-starts one of them at
    least when they arrive interleaved, and the watcher says so."""
    c = make_cluster("clog", node_list=[{"name": "n", "count": 4, "cpu": 4}])
    with GangWatch(c.admin) as watch:
        one, two = gang("one", 3, cpu=4, run=600), gang("two", 3, cpu=4, run=600)
        for a, b in zip(one, two, strict=True):
            c.admin.create(a)
            c.admin.create(b)
        watch.wait(lambda w: sum(len(g.running) for g in w.gangs.values()) == 4, 20)
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
        watch.wait(lambda w: all(g.running_at for g in w.gangs.values()), 30)
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
        )  # fmt: skip
    c.admin.create_many(gang("large", 4, cpu=4, run=600, schedulingGroup={"podGroupName": "large"}))
    time.sleep(2)
    assert not [p for p in c.admin.list("pods", "default") if p["spec"].get("nodeName")]
    pods = c.admin.create_many(gang("small", 3, cpu=4, run=600, schedulingGroup={"podGroupName": "small"}))
    assert pods[0]["spec"]["schedulingGroup"] == {"podGroupName": "small"}
    wait_phase(c.admin, [p["metadata"]["name"] for p in pods], "Running")
    assert not [p for p in c.admin.list("pods", "default", labels="scheduling.x-k8s.io/pod-group=large")
                if p["spec"].get("nodeName")]  # fmt: skip


def test_native_gangs_are_off_by_default(cluster):
    with pytest.raises(LookupError):
        cluster.admin.resource("PodGroup", "scheduling.k8s.io/v1alpha2")


# -- many --------------------------------------------------------------------------------------


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
    assert time.monotonic() - start < 30
    seen = 0
    for kind, _ in c.admin.watch("nodes", version=version, timeout=10):
        assert kind == "ADDED"
        seen += 1
        if seen == 2000:
            break
    end = time.monotonic() + 20
    while c.admin.list_full("pods", limit=1)["metadata"].get("remainingItemCount") != 9999:
        assert time.monotonic() < end
        time.sleep(0.2)
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
    ]  # fmt: skip
    p = pod("x", cpu="500m", memory="1Gi")
    p["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
        {"name": "setup", "resources": {"requests": {"cpu": "2"}}},
    ]
    p["spec"]["overhead"] = {"memory": "1Mi"}
    assert requests(p) == {"cpu": quantity("2.25"), "memory": 2**30 + 2**20, "pods": 1}


def test_kubectl(cluster):
    version = json.loads(cluster.kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == "v1.36.3"
    assert "node-015" in cluster.kubectl("get", "nodes", user="sluice")

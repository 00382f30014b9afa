"""The cluster itself: does it start, let in, write down and go as docs/cluster.md says?"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from .api import Api, ApiError
from .cluster import COMPONENTS, Cluster
from .patience import until
from .process import process_state
from .work import phase_is, pod, wait_phase

SMALL = [{"name": "n", "count": 2, "cpu": 4}]


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
        assert took < 120, "a few seconds on an idle machine"
        assert c.running() == list(COMPONENTS)
        pids = [c.processes[x].pid for x in COMPONENTS]
        # 0100007F is 127.0.0.1 as the kernel prints it
        assert listeners(pids) == {("0100007F", port) for port in c.ports.values()}
        c.admin.create(pod("first", run=0))
        c.admin.wait("pods", "first", phase_is("Succeeded"))
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
        "print(*[p.pid for p in c.processes.values()], flush=True)\ntime.sleep(600)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    pids = owner.stdout.readline().split()
    assert len(pids) == len(COMPONENTS)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    until(lambda: not (tmp_path / "c").exists())
    assert not [p for p in pids if process_state(p)]


def test_another_processes_number_is_not_ours(tmp_path):
    c = Cluster("stale", root=tmp_path)
    c.folder.mkdir()
    c.processes["etcd"].pid_file.write_text(f"{os.getpid()} 12345\n")
    assert c.running() == []
    c.down()  # does not end this very process


def test_taken_port_is_survived(tmp_path, monkeypatch):
    """Another program listens on a chosen port before the server does: the cluster starts on other ports."""
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


def test_a_server_that_ends_while_it_starts_is_started_again(tmp_path):
    with Cluster("again", root=tmp_path, node_list=[], without=COMPONENTS[2:]) as c:
        server = c.processes["kube-apiserver"]
        c.kill("apiserver")
        Timer(0.3, server.signal, [signal.SIGKILL]).start()
        c.start("apiserver")
        assert c.admin.list("namespaces") and server.pid


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


@pytest.mark.parametrize("config", ["sluice", "sluice-token"])
def test_second_user_is_who_it_says(cluster, config):
    api = Api.from_kubeconfig(cluster.folder / f"{config}.kubeconfig")
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    who = api.create(review)["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:sluice-system:sluice"
    assert sorted(who["groups"]) == [
        "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:sluice-system",
    ]


def test_second_user_has_exactly_its_rules(cluster, namespace):
    """Allowed what deploy/rbac.yaml grants, refused what it must not do."""

    def may(verb, resource, group="", sub="", ns=namespace, name=""):
        attributes = {"verb": verb, "resource": resource, "group": group, "subresource": sub, "namespace": ns, "name": name}
        review = {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {},
            "spec": {"resourceAttributes": {k: v for k, v in attributes.items() if v}},
        }
        return cluster.sluice.create(review)["status"]["allowed"]

    home = "sluice-system"
    for allowed in (
        ("watch", "pods", "", "", ""), ("list", "nodes", "", "", ""), ("create", "pods", "", "binding"),
        ("patch", "pods"), ("patch", "pods", "", "status"), ("create", "pods", "", "eviction"),
        ("patch", "jobs", "batch"), ("patch", "statefulsets", "apps"), ("get", "namespaces", "", "", "", "kube-system"),
        ("create", "events", "events.k8s.io"), ("patch", "podgroups", "scheduling.x-k8s.io", "status"),
        ("patch", "podgroups", "scheduling.sigs.k8s.io"), ("create", "fluxjobs", "jobs.converged-computing.org"),
        ("patch", "leases", "coordination.k8s.io", "", home, "sluice"), ("create", "secrets", "", "", home),
        ("get", "secrets", "", "", home, "sluice-https"), ("update", "secrets", "", "", home, "sluice-webhook"),
        ("create", "tokenreviews", "authentication.k8s.io", "", ""),
        ("patch", "mutatingwebhookconfigurations", "admissionregistration.k8s.io", "", "", "sluice"),
    ):
        assert may(*allowed), allowed
    for refused in (
        ("delete", "fluxjobs", "jobs.converged-computing.org"),
        ("delete", "pods"), ("create", "pods"), ("delete", "jobs", "batch"), ("create", "jobs", "batch"),
        ("patch", "nodes", "", "", ""), ("delete", "nodes", "", "", ""), ("get", "secrets"), ("list", "secrets"),
        ("get", "secrets", "", "", "kube-system"), ("create", "pods", "", "exec"), ("get", "pods", "", "log"),
        ("get", "secrets", "", "", home, "database"), ("list", "secrets", "", "", home), ("delete", "secrets", "", "", home),
        ("update", "pods"), ("update", "jobs", "batch"), ("create", "podgroups", "scheduling.x-k8s.io"),
        ("list", "services", "", "", ""), ("get", "configmaps", "", "", home), ("list", "customresourcedefinitions", "apiextensions.k8s.io"),
        ("patch", "leases", "coordination.k8s.io", "", "kube-system"), ("patch", "leases", "coordination.k8s.io", "", home, "another"), ("patch", "namespaces", "", "", ""),
        ("create", "clusterrolebindings", "rbac.authorization.k8s.io", "", ""), ("impersonate", "users", "", "", ""),
        ("delete", "podgroups", "scheduling.x-k8s.io"), ("deletecollection", "pods"),
        ("patch", "mutatingwebhookconfigurations", "admissionregistration.k8s.io", "", "", "another"),
        ("create", "serviceaccounts", "", "token", home),
    ):
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


def test_more_users(cluster):
    """A user with a certificate of its own, and one whose certificate has expired."""
    guest = Api.from_kubeconfig(cluster.sign_in("guest", "guest", ["visitors"]))
    with pytest.raises(ApiError, match='User "guest" cannot list resource "pods"'):
        guest.list("pods")
    late = Api.from_kubeconfig(cluster.sign_in("late", "late", ["system:masters"], expired=True))
    with pytest.raises(ApiError) as e:
        late.request("GET", "/api/v1/pods")
    assert e.value.status == 401


def test_kubectl(cluster):
    version = json.loads(cluster.kubectl("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"] == "v1.36.3"
    assert "node-015" in cluster.kubectl("get", "nodes", user="sluice")

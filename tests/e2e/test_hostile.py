"""What a user who holds nothing but the edit role in one namespace may not be able to do, and what the
network may not: attacks on a real API server."""

import copy
import http.client
import resource
import socket
import time

import pytest
import yaml

from cluster import ApiError, work
from cluster.api import Api

from .conftest import crds, until
from .daemon import ROOT, Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 2, "cpu": 4}]}


@pytest.fixture(scope="module")
def daemon(module_cluster):
    crds(module_cluster)
    with Sluiced(module_cluster) as d:
        yield d


@pytest.fixture(scope="module")
def policy(module_cluster):
    for obj in yaml.safe_load_all((ROOT / "deploy" / "policy.yaml").read_text()):
        module_cluster.admin.apply(obj)


@pytest.fixture
def mallory(module_cluster, space):
    """A client with the edit role in the test's namespace alone."""
    module_cluster.admin.create({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "edit", "namespace": space},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    })  # fmt: skip
    return Api.from_kubeconfig(module_cluster.sign_in("mallory", "mallory"))


def forged(name, space, node):
    p = copy.deepcopy(work.gang(name, 1, cpu=3, namespace=space, run=60, scheduler="default-scheduler")[0])
    p["metadata"]["name"] = name
    p["metadata"].setdefault("annotations", {})["sluice.sh/node"] = node
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    p["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    p["spec"]["nodeSelector"] = {"no-such": "label"}  # so that the default scheduler leaves it pending
    return p


def test_a_forged_release_takes_no_room(daemon, module_cluster, mallory, space):
    for node in ("node-0", "node-1"):
        mallory.create(forged(f"f-{node}", space, node))
    module_cluster.admin.create_many(work.gang("victim", 2, cpu=4, namespace=space, run=1))
    until(lambda: module_cluster.admin.get("pods", "victim-0", space)["spec"].get("nodeName"))


def refusal(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiError as e:
        return str(e)
    return None


def test_the_policy_keeps_what_is_ours(policy, daemon, module_cluster, mallory, space):
    def forging():
        return refusal(mallory.create, forged(f"g{time.monotonic_ns()}", space, "node-0")) or ""

    # The API server obeys a policy it has just learned of a moment later.
    until(lambda: "only Sluice writes" in forging())
    gated = forged("gated", space, "node-0")
    gated["metadata"]["annotations"] = {}
    gated["spec"]["schedulingGates"] = [{"name": "fluxqueue"}]
    mallory.create(gated)
    opening = {"spec": {"schedulingGates": None}}
    assert "opened by Sluice" in refusal(mallory.patch, "pods", "gated", opening, namespace=space)
    noting = {"metadata": {"annotations": {"sluice.sh/user": "grace"}}}
    assert "cannot be changed after the object was created" in refusal(mallory.patch, "pods", "gated", noting, namespace=space)
    assert refusal(mallory.patch, "pods", "gated", {"metadata": {"labels": {"x": "y"}}}, namespace=space) is None


def test_templates_carry_nothing_of_ours(policy, daemon, module_cluster, mallory, space):
    """What a controller makes from a template is written by an account that the policy lets through."""

    def job(name, **notes):
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": space},
                "spec": {"parallelism": 1, "template": {"metadata": {"annotations": notes}, "spec": {
                    "restartPolicy": "Never", "schedulerName": "sluice", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip

    until(lambda: "templates may not carry" in (refusal(mallory.create, job(f"t{time.monotonic_ns()}", **{"sluice.sh/node": "node-0"})) or ""))
    for key in ("sluice.sh/places", "sluice.sh/user", "sluice.sh/set-priority"):
        assert "templates may not carry" in refusal(mallory.create, job("t", **{key: "1"}))
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron", "namespace": space},
            "spec": {"schedule": "* * * * *", "suspend": True, "jobTemplate": {
                "metadata": {"annotations": {"sluice.sh/user": "grace"}}, "spec": job("j")["spec"]}}}  # fmt: skip
    assert "templates may not carry" in refusal(mallory.create, cron)
    del cron["spec"]["jobTemplate"]["metadata"]
    assert refusal(mallory.create, cron) is None
    assert refusal(mallory.create, job("fine", **{"example.com/x": "y"})) is None


def may_edit_fluxjobs(admin):
    """The role that the manifests add to `edit`."""
    for obj in yaml.safe_load_all((ROOT / "deploy" / "sluice.yaml").read_text()):
        if obj["kind"] == "ClusterRole" and "rbac.authorization.k8s.io/aggregate-to-edit" in obj["metadata"].get("labels", {}):
            admin.apply(obj)


def test_a_thousand_large_objects(daemon, module_cluster, mallory, space):
    """Of the largest legal size, by one user; somebody's gang of two starts within a second all the same."""
    admin = module_cluster.admin

    def start(name):
        """How long a gang of two takes; it leaves its nodes to the next."""
        pods = work.gang(name, 2, cpu=1, namespace="default", run=0, scheduler="sluice")
        names = [p["metadata"]["name"] for p in pods]
        began = time.monotonic()
        admin.create_many(pods)
        until(lambda: all(admin.get("pods", p, "default")["spec"].get("nodeName") for p in names), interval=0.02)
        took = time.monotonic() - began
        for p in names:
            admin.delete("pods", p, "default", grace=0)
        until(lambda: not {p["metadata"]["name"] for p in admin.list("pods", "default")} & set(names))
        return took

    may_edit_fluxjobs(admin)
    admin.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": "true"}}})
    calm = min(start(f"calm{i}") for i in range(3))
    spec = ("version: 1\nresources: [{type: slot, count: 10000, label: s, with: [{type: core, count: 1}]}]\n"
            "tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\nattributes: {system: {duration: 60}}\n")  # fmt: skip

    def job(name, pods):
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": space}, "spec": {
            "parallelism": pods, "completions": pods, "suspend": True, "template": {"spec": {
                "schedulerName": "sluice", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip

    def fluxjob(name):
        return {"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob",
                "metadata": {"name": name, "namespace": space}, "spec": {"jobspec": spec}}  # fmt: skip

    until(lambda: refusal(mallory.create, fluxjob("first")) is None)
    hostile = []
    for i in range(333):
        hostile += [job(f"beyond{i}", 2_000_000), job(f"large{i}", 99_999), fluxjob(f"flux{i}")]
    mallory.create_many(hostile)
    # Of five the best: the machine that runs the test may be busy, a core that is stalled delays all.
    under = [start(f"under{i}") for i in range(5)]
    print(f"a gang of 2 starts in {calm:.2f} s, among 1000 hostile objects in {min(under):.2f} s (of {[round(t, 2) for t in under]})")
    assert min(under) < 1 + calm


def test_silent_connections_leave_health_alone(daemon, module_cluster):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    words = [w for w in daemon.log.read_text().split() if w.startswith(("health_port=", "https_port="))]
    ports = {k: int(v) for k, v in (w.split("=") for w in words)}
    silent = []
    try:
        for _ in range(1100):
            silent.append(socket.create_connection(("127.0.0.1", ports["https_port"])))
        probe = http.client.HTTPConnection("127.0.0.1", ports["health_port"], timeout=2)
        probe.request("GET", "/healthz")
        assert probe.getresponse().status == 200
        assert daemon.request("GET", "/v1/queues")[0] == 200
        probe = http.client.HTTPConnection("127.0.0.1", ports["health_port"], timeout=2)
        probe.request("POST", "/healthz", b"x" * 100)
        assert probe.getresponse().status == 413
    finally:
        for s in silent:
            s.close()

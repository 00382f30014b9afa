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
    assert "stay as they were" in refusal(mallory.patch, "pods", "gated", noting, namespace=space)
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

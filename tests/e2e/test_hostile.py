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

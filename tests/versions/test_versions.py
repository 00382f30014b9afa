"""One way through everything that depends on the server, for each Kubernetes that is supported: SLUICE_K8S=1.35.0 names it."""

import pytest

from cluster import work
from cluster.cluster import gang_version, kubernetes
from cluster.patience import until
from e2e.drain import hooked

CLUSTER = {"gang": True, "node_list": [{"name": "node", "count": 4, "cpu": 4}]}


@pytest.fixture(scope="module")
def sluiced(module_cluster):
    with hooked(module_cluster) as d:
        yield d


@pytest.fixture
def space(module_cluster, request):
    name = request.node.name.replace("_", "-")[:50]
    module_cluster.namespace(name, labels={"sluice.sh/hold": "true"} if "held" in name else None)
    yield name
    for obj in module_cluster.admin.list("jobs", name):
        module_cluster.admin.delete("jobs", obj["metadata"]["name"], name, propagation="Background", missing_ok=True)
    module_cluster.admin.delete_all("pods", name, grace=0)


def bound(cluster, space):
    return [p["spec"]["nodeName"] for p in cluster.admin.list("pods", space) if p["spec"].get("nodeName")]


def complete(cluster, space, *names):
    return all(work.condition(cluster.admin.get("jobs", n, space), "Complete") for n in names)


def test_the_server_is_of_that_version(module_cluster):
    assert module_cluster.admin.request("GET", "/version")["gitVersion"] == f"v{kubernetes()}"


def test_gangs_one_after_the_other(sluiced, module_cluster, space):
    for name in ("a", "b", "c"):
        module_cluster.admin.create(work.job(name, pods=3, cpu=3, run=2, scheduler="sluice", namespace=space))
    until(lambda: complete(module_cluster, space, "a", "b", "c"))


def test_held_jobs(sluiced, module_cluster, space):
    """Suspended, given nodes, resumed for the default scheduler; a FluxJob says so."""
    for name in ("a", "b"):
        made = module_cluster.admin.create(work.job(name, pods=3, cpu=3, run=2, namespace=space))
        assert made["spec"]["suspend"] is True
    until(lambda: complete(module_cluster, space, "a", "b"))
    assert len(module_cluster.admin.list("fluxjobs", space)) == 2


def test_podgroups(sluiced, module_cluster, space):
    module_cluster.admin.request("POST", f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{space}/podgroups",
                                 {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 3}})
    members = work.gang("g", 3, cpu=3, run=600, scheduler="sluice", namespace=space)
    module_cluster.admin.create_many(members[:2])
    until(lambda: "g" in sluiced.jobs(space))
    assert not bound(module_cluster, space)
    module_cluster.admin.create_many(members[2:])
    until(lambda: len(bound(module_cluster, space)) == 3)


@pytest.mark.skipif(not gang_version(), reason=f"Kubernetes {kubernetes()} has no native PodGroups")
def test_native_groups(sluiced, module_cluster, space):
    version = gang_version()
    path = f"/apis/scheduling.k8s.io/{version}/namespaces/{space}/podgroups"
    mode = "PodGroup" if version == "v1alpha2" else {"all": {}}
    kind = "PodGroupScheduled" if version == "v1alpha2" else "PodGroupInitiallyScheduled"
    module_cluster.admin.request("POST", path, {
        "apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": {"name": "n"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}, "disruptionMode": mode}})  # fmt: skip

    def condition():
        conditions = module_cluster.admin.request("GET", f"{path}/n").get("status", {}).get("conditions", [])
        return {c["type"]: c["status"] for c in conditions}.get(kind)

    def member(i):
        return work.pod(f"n-{i}", cpu=3, run=600, scheduler="sluice", namespace=space, schedulingGroup={"podGroupName": "n"})

    module_cluster.admin.create_many([member(i) for i in range(2)])
    until(lambda: condition() == "False", message=f"{kind} says that it waits")
    assert not bound(module_cluster, space)
    module_cluster.admin.create(member(2))
    until(lambda: len(bound(module_cluster, space)) == 3 and condition() == "True")

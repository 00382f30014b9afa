"""Native gangs: scheduling.k8s.io PodGroups whose pods name one of our schedulers."""

import subprocess
import time

import pytest

from cluster import work
from cluster.cluster import kubectl

from .conftest import until

CLUSTER = {
    "gang": True,
    "feature_gates": {"TopologyAwareWorkloadScheduling": True, "WorkloadAwarePreemption": True},
    "node_list": [{"name": "node", "count": 6, "cpu": 4, "per": {"rack": 2}}],
}
API = "scheduling.k8s.io/v1alpha2"


@pytest.fixture
def group(module_cluster, space):
    """group("name", 3, ...): make a PodGroup; group.get("name"), group.condition("name", type)."""

    class Groups:
        path = f"/apis/{API}/namespaces/{space}/podgroups"

        def __call__(self, name, count=None, **spec):
            policy = {"gang": {"minCount": count}} if count else {"basic": {}}
            meta = {"name": name, "namespace": space}
            body = {"apiVersion": API, "kind": "PodGroup", "metadata": meta, "spec": {"schedulingPolicy": policy, **spec}}
            return module_cluster.admin.request("POST", self.path, body)

        def get(self, name):
            return module_cluster.admin.request("GET", f"{self.path}/{name}")

        def condition(self, name, kind="PodGroupScheduled"):
            return work.condition({"status": {}, **self.get(name)}, kind)

        def delete(self, name):
            module_cluster.admin.request("DELETE", f"{self.path}/{name}")

    return Groups()


@pytest.fixture
def members(module_cluster, space):
    def run(name, numbers, cpu=4, group=None, scheduler="sluice", **more):
        ref = {"podGroupName": group or name}
        pods = [work.pod(f"{name}-{i}", cpu=cpu, namespace=space, run=600, scheduler=scheduler, schedulingGroup=ref, **more)
                for i in numbers]  # fmt: skip
        return module_cluster.admin.create_many(pods)

    return run


@pytest.fixture
def placed(module_cluster, space):
    def run(prefix=""):
        pods = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in module_cluster.admin.list("pods", space)}
        return {n: node for n, node in pods.items() if node and n.startswith(prefix)}

    return run


@pytest.mark.parametrize("scheduler", ["sluice", "fluence"])
def test_gang_starts_whole_at_its_count(sluiced, module_cluster, group, members, placed, space, scheduler):
    members("crew", range(2), scheduler=scheduler)
    time.sleep(1)
    assert not placed()  # no PodGroup yet
    group("crew", 3)
    waits = until(lambda: group.condition("crew").get("status") == "False" and group.condition("crew"))
    assert waits["reason"] == "Unschedulable" and waits.get("observedGeneration") == group.get("crew")["metadata"].get("generation")
    until(lambda: "has 2 of 3 members" in group.condition("crew")["message"])
    assert not placed()
    members("crew", [2], scheduler=scheduler)
    until(lambda: len(placed()) == 3)
    runs = until(lambda: group.condition("crew").get("status") == "True" and group.condition("crew"))
    assert runs["reason"] == "Scheduled" and runs["lastTransitionTime"] >= waits["lastTransitionTime"]
    command = [kubectl(), "--kubeconfig", module_cluster.kubeconfig, "-n", space, "get", f"podgroups.v1alpha2.{API.split('/')[0]}"]
    assert "Scheduled" in subprocess.run(command, capture_output=True, text=True).stdout
    events = until(lambda: len(found := [e for e in module_cluster.admin.list("events", space) if e["reason"] == "Scheduled"]) == 3 and found)
    assert {e["reportingComponent"] for e in events} == {scheduler}


def test_two_gangs_never_share_the_room(sluiced, group, members, placed):
    for name in ("one", "two"):
        group(name, 4)
    for i in range(4):
        members("one", [i])
        members("two", [i])
    until(lambda: len(placed()) == 4)
    time.sleep(1)
    assert len(placed("one")) == 4 and not placed("two")
    until(lambda: group.get("two")["metadata"]["annotations"]["sluice.sh/reason"])
    until(lambda: group.condition("two")["reason"] == "Unschedulable")


def test_the_basic_policy_starts_what_fits(sluiced, group, members, placed):
    group("loose")
    members("loose", range(8))
    until(lambda: len(placed()) == 6)
    until(lambda: group.condition("loose").get("status") == "True")


def test_topology(sluiced, module_cluster, group, members, placed):
    racks = {n["metadata"]["name"]: n["metadata"]["labels"]["topology.sluice.sh/rack"] for n in module_cluster.admin.list("nodes")}
    key = {"schedulingConstraints": {"topology": [{"key": "topology.sluice.sh/rack"}]}}
    group("close", 2, **key)
    members("close", range(3))  # one more than a rack holds
    until(lambda: len(placed()) == 2)
    group("wide", 3, **key)
    members("wide", range(3))
    until(lambda: "sluice.sh/reason" in group.get("wide")["metadata"].get("annotations", {}))
    time.sleep(0.5)
    assert len(placed()) == 2 and len({racks[n] for n in placed().values()}) == 1
    group("odd", 1, schedulingConstraints={"topology": [{"key": "example.com/row"}]})
    members("odd", [0])
    until(lambda: group.condition("odd").get("reason") == "SchedulerError")
    assert "example.com/row" in group.condition("odd")["message"]


def test_priority(sluiced, module_cluster, group, members, placed, space):
    module_cluster.admin.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000})
    for name in ("now", "calm"):
        group(name, 6)
        members(name, range(6))
        until(lambda n=name: n in sluiced.jobs(space))
    until(lambda: len(placed("now")) == 6)
    assert group("urgent", 6, priorityClassName="urgent")["spec"]["priority"] == 1000
    members("urgent", range(6))
    until(lambda: sluiced.jobs(space).get("urgent", {}).get("promised"))  # who waits with less priority comes after it
    for i in range(6):
        module_cluster.admin.delete("pods", f"now-{i}", space, grace=0)
    until(lambda: len(placed("urgent")) == 6)
    assert not placed("calm")


def test_disruption_takes_the_whole_group(sluiced, module_cluster, group, space, placed):
    group("tied", 3, disruptionMode="PodGroup")
    template = work.pod("tied", cpu=4, scheduler="sluice", labels={"app": "tied"}, restart="Always", schedulingGroup={"podGroupName": "tied"})
    meta = {"labels": {"app": "tied"}}
    spec = {"replicas": 3, "selector": {"matchLabels": meta["labels"]}, "template": {"metadata": meta, "spec": template["spec"]}}
    module_cluster.admin.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "tied", "namespace": space}, "spec": spec})
    first = until(lambda: len(placed()) == 3 and placed())
    until(lambda: group.condition("tied").get("status") == "True")
    name = sorted(first)[0]
    path = f"/api/v1/namespaces/{space}/pods/{name}/eviction"
    module_cluster.admin.request("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": space}})
    until(lambda: len(placed()) == 3 and not set(placed()) & set(first), 30, "all three were made anew")
    until(lambda: not group.condition("tied", "DisruptionTarget"), 10, "the mark is taken off")


def test_deletion(sluiced, module_cluster, group, members, placed, space):
    """A gang whose pods are deleted leaves the queue; without its PodGroup a new member does not start."""
    group("gone", 7)
    members("gone", range(7))
    until(lambda: "sluice.sh/reason" in group.get("gone")["metadata"].get("annotations", {}))
    until(lambda: sluiced.jobs(space)["gone"]["size"] == 7)
    module_cluster.admin.delete_all("pods", space, grace=0)
    until(lambda: "gone" not in sluiced.jobs(space))
    group.delete("gone")
    members("gone", [0])
    time.sleep(1)
    assert not placed()
    assert sluiced.metrics()['sluice_audit_differences_total'] == 0

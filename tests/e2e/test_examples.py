"""The published examples of Fluence and Fluxnetes, unchanged.  SLUICE_EXAMPLES names the folder that holds them
(fluence/..., fluxnetes/...), otherwise ../shared/examples beside the repository; without either these tests are
skipped (but never in CI), and test_shapes.py has shapes of our own."""

import pytest
import yaml

from .conftest import EXAMPLES, until, with_examples

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 16, "memory": "64Gi"}]}
KNOWN = {"Pod", "Job", "Deployment", "ReplicaSet", "StatefulSet", "Service", "PodGroup"}


def objects(file):
    return [o for o in yaml.safe_load_all(file.read_text()) if o]


def usable():
    for file in sorted([*EXAMPLES.glob("fluence/**/*.yaml"), *EXAMPLES.glob("fluxnetes/**/*.yaml")]):
        text = file.read_text()
        if "%" not in text and {o["kind"] for o in objects(file)} <= KNOWN:
            yield pytest.param(file, id=str(file.relative_to(EXAMPLES)))


def wanted(obj):
    if obj["kind"] == "Job":
        return min(obj["spec"].get("parallelism", 1), obj["spec"].get("completions", 10**9))
    return {"Pod": 1}.get(obj["kind"], obj.get("spec", {}).get("replicas", 1)) if obj["kind"] not in ("Service", "PodGroup") else 0


@with_examples
def test_examples_are_there():
    assert len(list(usable())) >= 20


@with_examples
@pytest.mark.parametrize("file", list(usable()))
def test_example(sluiced, module_cluster, space, file):
    admin = module_cluster.admin
    pods = 0
    for obj in objects(file):
        obj["metadata"]["namespace"] = space
        admin.create(obj)
        pods += wanted(obj)

    def placed():
        return [p for p in admin.list("pods", space) if p["spec"].get("nodeName")]

    if "unsatisfiable" in file.name:
        until(lambda: [j for j in sluiced.jobs(space).values() if j["state"] == "never"])
        assert not placed()
        return
    until(lambda: len(placed()) >= pods, 30, f"{pods} pods placed")
    for p in placed():
        name = p["spec"]["schedulerName"]
        events = until(lambda n=p["metadata"]["name"]: [
            e for e in admin.list("events", space) if e["reason"] == "Scheduled" and e["involvedObject"]["name"] == n])  # fmt: skip
        assert name in (events[0].get("reportingComponent"), events[0].get("source", {}).get("component"))

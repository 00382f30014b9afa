"""The published examples of Fluence and Fluxnetes, unchanged.  SLUICE_EXAMPLES names the folder that holds them
(fluence/..., fluxnetes/...), otherwise ../shared/examples beside the repository; without either these tests are
skipped (but never in CI), and test_shapes.py has shapes of our own.

All of them run.  Some are MPIJobs and MiniClusters, kinds of other projects whose controllers are not here: their
objects are made, and the test makes of them what those controllers make (`launch`).  One asks for 1 020 workers; it
gets WORKERS_MAX, and its PodGroup as many, because starting a thousand pods is measured elsewhere (scale.py)."""

import copy

import pytest
import yaml

from .conftest import EXAMPLES, until, with_examples

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 16, "memory": "64Gi", "capacity": {"vpc.amazonaws.com/efa": 1}}]}
WORKERS_MAX = 40
FOREIGN = {"MPIJob": ("kubeflow.org", "v2beta1", "mpijobs"), "MiniCluster": ("flux-framework.org", "v1alpha2", "miniclusters")}
FILES = sorted([*EXAMPLES.glob("fluence/**/*.yaml"), *EXAMPLES.glob("fluxnetes/**/*.yaml")])


def objects(file):
    return [o for o in yaml.safe_load_all(file.read_text()) if o]


def wanted(obj):
    """How many pods the controllers of the cluster make of it."""
    kind, spec = obj["kind"], obj.get("spec", {})
    if kind == "Job":
        return min(spec.get("parallelism", 1), spec.get("completions", 10**9))
    if kind == "Pod":
        return 1
    return spec.get("replicas", 1) if kind in ("Deployment", "ReplicaSet", "StatefulSet") else 0


def owned(obj, kind, api, name, labels, spec):
    meta = obj["metadata"]
    ref = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": meta["name"], "uid": meta["uid"], "controller": True}
    return {"apiVersion": api, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": [ref]}}  # fmt: skip


def launch(obj):
    """What the controllers of MPIJobs and MiniClusters make of one: workers as pods and the launcher as a Job; an
    Indexed Job of its size."""
    name, spec = obj["metadata"]["name"], obj["spec"]
    if obj["kind"] == "MiniCluster":
        pod = spec["pod"]
        main = {**copy.deepcopy(spec["containers"][0]), "name": "flux"}
        main["command"] = main["command"].split()
        template = {"metadata": {"labels": pod.get("labels", {})},
                    "spec": {"schedulerName": pod["schedulerName"], "restartPolicy": "Never", "containers": [main],
                             "subdomain": spec["network"]["headlessName"]}}  # fmt: skip
        size = spec["size"]
        return [owned(obj, "Job", "batch/v1", name, {}, {"completionMode": "Indexed", "completions": size, "parallelism": size,
                                                         "template": template})]  # fmt: skip
    roles = spec["mpiReplicaSpecs"]

    def labels(role):
        known = {"training.kubeflow.org/job-role": role, "training.kubeflow.org/job-name": name}
        return {**roles[role.capitalize()]["template"].get("metadata", {}).get("labels", {}), **known}

    workers = [owned(obj, "Pod", "v1", f"{name}-worker-{i}", labels("worker"),
                     {**copy.deepcopy(roles["Worker"]["template"]["spec"]), "restartPolicy": "Never"})
               for i in range(roles["Worker"]["replicas"])]  # fmt: skip
    template = {"metadata": {"labels": labels("launcher")},
                "spec": {**copy.deepcopy(roles["Launcher"]["template"]["spec"]), "restartPolicy": "Never"}}  # fmt: skip
    return [*workers, owned(obj, "Job", "batch/v1", f"{name}-launcher", {}, {"parallelism": 1, "completions": 1, "template": template})]


def cut(found):
    """No more than WORKERS_MAX workers, in the MPIJob and in the PodGroup that counts them."""
    for obj in found:
        if obj["kind"] == "MPIJob":
            worker = obj["spec"]["mpiReplicaSpecs"]["Worker"]
            worker["replicas"] = min(worker["replicas"], WORKERS_MAX)
        elif obj["kind"] == "PodGroup":
            obj["spec"]["minMember"] = min(obj["spec"]["minMember"], WORKERS_MAX)
    return found


@pytest.fixture(scope="module")
def foreign(module_cluster):
    """The kinds of other projects, with any content."""
    for kind, (group, version, plural) in FOREIGN.items():
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        module_cluster.admin.create({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
                     "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
        })  # fmt: skip
        until(lambda k=kind, v=f"{group}/{version}": module_cluster.admin.resource(k, v), message=f"the kind {kind} is served")


@with_examples
def test_examples_are_there():
    assert len(FILES) == 38
    kinds = [o["kind"] for f in FILES for o in objects(f)]
    assert {k: kinds.count(k) for k in FOREIGN} == {"MPIJob": 6, "MiniCluster": 6}


@with_examples
@pytest.mark.parametrize("file", [pytest.param(f, id=str(f.relative_to(EXAMPLES))) for f in FILES])
def test_example(sluiced, foreign, module_cluster, space, file):
    admin = module_cluster.admin
    pods = 0
    for obj in cut(objects(file)):
        obj["metadata"]["namespace"] = space
        made = admin.create(obj)
        parts = launch(made) if obj["kind"] in FOREIGN else []
        admin.create_many(parts)
        pods += wanted(obj) + sum(wanted(p) for p in parts)

    def placed():
        return [p for p in admin.list("pods", space) if p["spec"].get("nodeName")]

    if "unsatisfiable" in file.name:
        until(lambda: [j for j in sluiced.jobs(space).values() if j["state"] == "never"])
        assert not placed()
        return
    assert pods
    until(lambda: len(placed()) >= pods, 30, f"{pods} pods placed")
    for p in placed():
        name = p["spec"]["schedulerName"]
        events = until(lambda n=p["metadata"]["name"]: [
            e for e in admin.list("events", space) if e["reason"] == "Scheduled" and e["involvedObject"]["name"] == n])  # fmt: skip
        assert name in (events[0].get("reportingComponent"), events[0].get("source", {}).get("component"))

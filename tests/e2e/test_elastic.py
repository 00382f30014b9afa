"""Elastic groups and sluice resize, with real controllers."""

import subprocess

import pytest

from cluster import work

from .conftest import crds, until
from .daemon import Sluiced, program

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 4}]}


@pytest.fixture(scope="module")
def sluiced(module_cluster, tmp_path_factory):
    """With a store on disk: some of the tests stop and start it."""
    crds(module_cluster)
    folder = tmp_path_factory.mktemp("elastic")
    with Sluiced(module_cluster, store=str(folder / "s.db"), folder=folder, config={"jobs": {"holdVacant": "0s"}}) as d:
        yield d


@pytest.fixture
def placed(module_cluster, space):
    def run(prefix=""):
        pods = [p for p in module_cluster.admin.list("pods", space) if p["spec"].get("nodeName")]
        live = [p for p in pods if p["status"].get("phase") not in ("Succeeded", "Failed") and not p["metadata"].get("deletionTimestamp")]
        return {p["metadata"]["name"]: p["spec"]["nodeName"] for p in live if p["metadata"]["name"].startswith(prefix)}

    return run


def sluice(d, space, *words):
    command = [str(program("sluice")), *map(str, words), "-n", space, "-s", f"unix:{d.socket}"]
    return subprocess.run(command, capture_output=True, text=True)


def elastic(name, pods, low, high, space, completions=None, **more):
    labels = {"sluice.sh/min-size": str(low), "sluice.sh/max-size": str(high)}
    return work.job(name, pods, completions, namespace=space, backoff=20, labels=labels, cpu=4, run=600, scheduler="sluice", **more)


def test_starts_small_and_is_filled_up(sluiced, module_cluster, space, placed):
    api = module_cluster.admin
    api.create(work.job("wall", 4, namespace=space, cpu=4, run=600, scheduler="sluice"))
    until(lambda: len(placed("wall")) == 4)
    api.create(elastic("e", 6, 2, 5, space, completions=50))
    until(lambda: len(placed("e-")) == 2)
    api.delete("jobs", "wall", space, propagation="Background")
    until(lambda: len(placed("e-")) == 5, message="max-size")
    waiting = [p for p in api.list("pods", space) if not p["spec"].get("nodeName")]
    name = waiting[0]["metadata"]["name"]
    until(lambda: "joins when there is room" in work.condition(api.get("pods", name, space), "PodScheduled")["message"])
    # A restarted daemon continues where the old one was.
    sluiced.kill()
    name = sorted(placed("e-"))[0]
    api.delete("pods", name, space, grace=0)
    sluiced.start()
    until(lambda: len(p := placed("e-")) == 5 and name not in p)
    until(lambda: sluiced.jobs(space)["e"]["bound"] == 5)


def test_held_work_grows_too(sluiced, module_cluster, space, placed):
    """The same in a namespace that holds everything: pods are released to the room that is left."""
    api = module_cluster.admin
    api.create(work.job("wall", 4, namespace=space, cpu=4, run=600, scheduler="sluice"))
    until(lambda: len(placed("wall")) == 4)
    api.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": "true"}}}, None)
    job = elastic("h", 5, 2, 5, space, completions=50, schedulingGates=[{"name": "fluxqueue"}])
    job["metadata"]["annotations"] = {"sluice.sh/held": "yes"}
    job["spec"]["suspend"] = True
    job["spec"]["template"]["spec"].pop("schedulerName")
    api.create(job)
    until(lambda: len(placed("h-")) == 2)
    api.delete("jobs", "wall", space, propagation="Background")
    until(lambda: len(placed("h-")) == 5)
    for p in api.list("pods", space, labels="job-name=h"):
        assert p["metadata"]["labels"]["sluice.sh/node"] == p["spec"]["nodeName"]
    assert sluice(sluiced, space, "resize", "h", 3).stdout == "job h: parallelism 5 becomes 3\n"
    until(lambda: len(placed("h-")) == 3)


def test_resize_a_job(sluiced, module_cluster, space, placed):
    module_cluster.admin.create(elastic("j", 2, 2, 5, space, completions=50))
    until(lambda: len(placed()) == 2)
    done = sluice(sluiced, space, "resize", "j", 4)
    assert done.returncode == 0 and done.stdout == "job j: parallelism 2 becomes 4\n"
    until(lambda: len(placed()) == 4)
    sluiced.stop()
    sluiced.start()
    assert sluice(sluiced, space, "resize", "j", 2).returncode == 0
    until(lambda: len(placed()) == 2)
    until(lambda: sluiced.jobs(space)["j"]["bound"] == 2)
    for size, word in ((1, "minimum of 2"), (6, "larger than 5"), ("many", "not a number"), (-1, "")):
        done = sluice(sluiced, space, "resize", "j", size)
        assert done.returncode and word in done.stderr
    assert "no job" in sluice(sluiced, space, "resize", "nobody", 3).stderr
    # to nothing: the pods end, the Job stays
    assert "becomes 0" in sluice(sluiced, space, "resize", "j", 0).stdout
    until(lambda: not placed() and "j" not in sluiced.jobs(space))
    assert module_cluster.admin.get("jobs", "j", space)["spec"]["parallelism"] == 0


def test_resize_a_deployment(sluiced, module_cluster, space, placed):
    template = work.pod("web", cpu=4, scheduler="sluice", labels={"app": "web"}, restart="Always")
    meta = {"labels": {"app": "web"}}
    spec = {"replicas": 2, "selector": {"matchLabels": meta["labels"]}, "template": {"metadata": meta, "spec": template["spec"]}}
    module_cluster.admin.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": space}, "spec": spec})
    until(lambda: len(placed()) == 2)
    assert sluice(sluiced, space, "resize", "web", 3).stdout == "deployment web: replicas 2 becomes 3\n"
    until(lambda: len(placed()) == 3)
    sluice(sluiced, space, "resize", "web", 1)
    until(lambda: len(placed()) == 1)
    assert module_cluster.admin.get("deployments", "web", space)["spec"]["replicas"] == 1


def test_resize_an_indexed_job_and_bare_pods(sluiced, module_cluster, space, placed):
    api = module_cluster.admin
    api.create(work.job("i", 3, namespace=space, indexed=True, cpu=4, run=600, scheduler="sluice"))
    until(lambda: len(placed("i-")) == 3)
    assert "parallelism and completions 3 becomes 2" in sluice(sluiced, space, "resize", "i", 2).stdout
    until(lambda: len(placed("i-")) == 2)
    labels = {"sluice.sh/group": "bare", "sluice.sh/min-size": "1"}
    api.create_many([work.pod(f"bare-{i}", cpu=4, namespace=space, run=600, scheduler="sluice", labels=labels) for i in range(3)])
    until(lambda: len(placed("bare")) == 3)
    assert sluice(sluiced, space, "resize", "bare", 2).stdout == "bare: 1 of 3 members are evicted\n"
    until(lambda: len(placed("bare")) == 2)


def test_resize_while_it_waits(sluiced, module_cluster, space, placed):
    """The plan follows: a gang that fits nowhere is made smaller and starts; to zero is a cancel."""
    api = module_cluster.admin
    api.create(work.job("w", 8, 50, namespace=space, cpu=4, run=600, scheduler="sluice"))
    until(lambda: sluiced.jobs(space).get("w", {}).get("state") == "never")
    assert not placed()
    assert "out of the queue" in sluice(sluiced, space, "resize", "w", 0).stdout
    assert sluice(sluiced, space, "release", "w").returncode == 0
    assert "becomes 3" in sluice(sluiced, space, "resize", "w", 3).stdout
    until(lambda: len(placed()) == 3)
    assert sluiced.metrics()["sluice_audit_differences_total"] == 0

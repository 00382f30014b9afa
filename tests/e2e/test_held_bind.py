"""Held work in mode "bind": Jobs wait suspended, pods name Sluice and have neither gate nor pin, and Sluice binds them."""

import time

import pytest

from cluster import work

from .conftest import crds, until
from .drain import hooked
from .test_held import CLUSTER, GATE, check_released, clean, deployment, door, full, hard_spread, hold_space, mark, pods, running, scale, state  # noqa: F401


@pytest.fixture(scope="module")
def held(module_cluster):
    crds(module_cluster)
    with hooked(module_cluster, held={"refusedFor": "3s", "placeTimeout": "5s"}) as d:
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


def check_bound(p):
    """Bound by Sluice, by one write: nothing else was changed on the pod."""
    spec = p["spec"]
    assert spec["schedulerName"] == "sluice" and spec["nodeName"]
    assert "schedulingGates" not in spec and "affinity" not in spec
    return spec["nodeName"]


def test_job(held, module_cluster, door):  # noqa: F811
    space = door("bind")
    made = module_cluster.admin.create(work.job("four", pods=4, namespace=space, cpu=2, run=60))
    template = made["spec"]["template"]["spec"]
    assert made["spec"]["suspend"] is True
    assert template["schedulerName"] == "sluice" and "schedulingGates" not in template
    nodes = [check_bound(p) for p in running(module_cluster, space, 4)]
    assert len(set(nodes)) == 2, "two pods of 2 cpu on each node of 4"
    until(lambda: [f for f in module_cluster.admin.list("fluxjobs", space) if f.get("status", {}).get("nodeList")], 20, "a FluxJob tells its nodes")
    clean(held, module_cluster, space)


@pytest.mark.parametrize("kind", ["deployments", "statefulsets"])
def test_scale(held, module_cluster, door, kind):  # noqa: F811
    space = door("bind")
    name = {"deployments": "Deployment", "statefulsets": "StatefulSet"}[kind]
    module_cluster.admin.create(deployment("web", space, 2, kind=name))
    for count in (2, 4, 1):
        scale(module_cluster, kind, "web", space, count)
        until(lambda: len(pods(module_cluster, space)) == count, 20, f"{count} pods")  # noqa: B023
        for p in running(module_cluster, space, count):
            check_bound(p)
    assert len(module_cluster.admin.list("fluxjobs", space)) == 1
    clean(held, module_cluster, space)


def test_pod(held, module_cluster, door, full):  # noqa: F811
    """It waits like any other, and a FluxJob tells its place."""
    space = door("bind")
    module_cluster.admin.create(work.pod("one", cpu=4, namespace=space, run=60))
    until(lambda: state(held, space, "one") == "waiting", 20, "queued")
    until(lambda: module_cluster.admin.list("fluxjobs", space), 20, "it has a FluxJob")
    full(1)
    check_bound(*running(module_cluster, space, 1))
    clean(held, module_cluster, space)


def test_what_the_default_scheduler_decides(held, module_cluster, door):  # noqa: F811
    """A hard spread, or a third scheduler: gate and pin, as in mode "own"."""
    space = door("bind")
    job = work.job("spread", pods=2, namespace=space, cpu=1, run=60, labels={"app": "spread"})
    job["spec"]["template"]["spec"]["topologySpreadConstraints"] = hard_spread("spread", 1)
    module_cluster.admin.create(job)
    for p in running(module_cluster, space, 2):
        check_released(p)
    other = module_cluster.admin.create(work.pod("other", cpu=1, namespace=space, run=60, scheduler="nobody"))
    assert other["spec"]["schedulerName"] == "nobody" and other["spec"]["schedulingGates"] == [{"name": GATE}]
    clean(held, module_cluster, space)


def test_half_of_a_job(held, module_cluster, door):  # noqa: F811
    """A quota stops the third of four pods: the Job goes back into the queue, and none of its pods ever has a node."""
    space = door("bind")
    admin = module_cluster.admin
    admin.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "two", "namespace": space},
                  "spec": {"hard": {"pods": "2"}}})  # fmt: skip
    until(lambda: admin.get("resourcequotas", "two", space)["status"].get("hard"), 20, "the quota counts")
    admin.create(work.job("four", pods=4, namespace=space, cpu=1, run=60, backoff=6))
    until(lambda: len(pods(module_cluster, space)) == 2, 20, "two pods")
    seen = []

    def back():
        seen.extend(p["spec"].get("nodeName") for p in pods(module_cluster, space))
        return admin.get("jobs", "four", space)["spec"]["suspend"]

    until(back, 30, "suspended again")
    assert not any(seen)
    clean(held, module_cluster, space)


def test_webhook_missed_it(held, module_cluster, door, full):  # noqa: F811
    """The schedulerName of a Job cannot be changed any more, so the daemon adds the gate."""
    space = door(None)
    admin = module_cluster.admin
    admin.create(work.job("late", pods=2, namespace=space, cpu=2, run=60, backoff=6))
    hold_space(module_cluster, space, "bind")
    until(lambda: mark(admin, space, "late") == "yes", 20, "held")
    full()
    for p in running(module_cluster, space, 2, timeout=30):
        check_released(p)
    clean(held, module_cluster, space)


def test_daemon_is_down(held, module_cluster, door, full):  # noqa: F811
    """Pods that were made wait unscheduled, and the next daemon starts them as a whole."""
    space = door("bind")
    admin = module_cluster.admin
    admin.create(work.job("waits", pods=4, namespace=space, cpu=3, run=60, backoff=6))
    until(lambda: len(pods(module_cluster, space)) == 4, 20, "it is the next: its pods are made ahead")
    held.kill()
    full()
    time.sleep(3)
    assert not any(p["spec"].get("nodeName") for p in pods(module_cluster, space))
    held.start()
    for p in running(module_cluster, space, 4, timeout=30):
        check_bound(p)
    clean(held, module_cluster, space)


def test_label_is_removed(held, module_cluster, door, full):  # noqa: F811
    """What is held already gets its turn."""
    space = door("bind")
    admin = module_cluster.admin
    job = work.job("waits", pods=2, namespace=space, cpu=2, run=60)
    job["spec"]["activeDeadlineSeconds"] = 600  # such a Job is not resumed ahead of its turn
    admin.create(job)
    until(lambda: state(held, space, "waits") == "waiting", 20, "queued")
    hold_space(module_cluster, space, None)
    full()
    for p in running(module_cluster, space, 2, timeout=30):
        check_bound(p)
    clean(held, module_cluster, space)

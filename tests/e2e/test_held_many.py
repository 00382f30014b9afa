"""Held work in numbers: a Job wider than any label, many Jobs through few nodes, and churn."""

import collections
import os
import random
import time

import pytest

from cluster import ApiError, work

from .conftest import crds, until
from .drain import Drain, hooked
from .test_held import GATE, check_released, clean, deployment, door, pods, running  # noqa: F401

# Names of 60 characters.
CLUSTER = {"node_list": [{"name": "a-node-name-as-long-as-those-of-some-clouds-are-10-0".ljust(56, "x"), "count": 100, "cpu": 4}]}


@pytest.fixture(scope="module")
def held(module_cluster):
    crds(module_cluster)
    with hooked(module_cluster) as d:
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


def test_job_of_200_pods_on_100_nodes(held, module_cluster, door):  # noqa: F811
    space = door()
    module_cluster.admin.create(work.job("big", pods=200, namespace=space, cpu=2, run=120, indexed=True))
    found = running(module_cluster, space, 200, timeout=90)
    count = collections.Counter(check_released(p) for p in found)
    assert len(count) == 100 and set(count.values()) == {2}
    assert {len(n) for n in count} == {60}
    nodes = module_cluster.admin.get("jobs", "big", space)["metadata"]["annotations"]["sluice.sh/nodes"].split(",")
    assert sorted(nodes) == sorted(count), "the full list is on the Job"
    clean(held, module_cluster, space)


def test_many_held_jobs_drain(held, module_cluster):
    result = Drain(module_cluster, held, jobs=40, size=4).held()
    assert result["done"] == 40
    assert result["elsewhere"] == 0, "pods ran where they were not planned"
    assert result["writes_per_pod"] <= 4


class Churn:
    """Random work and random deaths in one namespace: Jobs deleted while held, released and running, Deployments
    rolled and scaled, naked pods."""

    def __init__(self, cluster, space, seed):
        self.admin, self.space, self.random = cluster.admin, space, random.Random(seed)
        self.number, self.jobs, self.sets, self.pods = 0, [], [], []
        self.done = collections.Counter()

    def _name(self, kind):
        self.number += 1
        return f"{kind}-{self.number}"

    def add_job(self):
        name, size = self._name("job"), self.random.randint(1, 6)
        more = self.random.choice((0, 0, size))
        self.admin.create(work.job(name, pods=size, completions=size + more, namespace=self.space, backoff=6,
                                   cpu=self.random.randint(1, 3), run=self.random.randint(1, 6)))  # fmt: skip
        self.jobs.append(name)

    def drop_job(self):
        if self.jobs:
            name = self.jobs.pop(self.random.randrange(len(self.jobs)))
            self.admin.delete("jobs", name, self.space, propagation="Background", missing_ok=True)

    def resize_job(self):
        if self.jobs:
            self.admin.patch("jobs", self.random.choice(self.jobs), {"spec": {"parallelism": self.random.randint(1, 4)}}, namespace=self.space)

    def add_set(self):
        if len(self.sets) < 6:
            name = self._name("set")
            self.admin.create(deployment(name, self.space, self.random.randint(0, 4)))
            self.sets.append(name)

    def scale_set(self):
        if self.sets:
            self.admin.patch("deployments", self.random.choice(self.sets), {"spec": {"replicas": self.random.randint(0, 5)}}, namespace=self.space)

    def roll_set(self):
        if self.sets:
            template = {"metadata": {"labels": {"v": str(self.number)}}}
            self.admin.patch("deployments", self.random.choice(self.sets), {"spec": {"template": template}}, namespace=self.space)

    def drop_set(self):
        if len(self.sets) > 3:
            name = self.sets.pop(self.random.randrange(len(self.sets)))
            self.admin.delete("deployments", name, self.space, propagation="Background", missing_ok=True)

    def add_pod(self):
        name = self._name("pod")
        self.admin.create(work.pod(name, namespace=self.space, cpu=1, run=self.random.randint(1, 5)))
        self.pods.append(name)

    def drop_pod(self):
        if self.pods:
            self.admin.delete("pods", self.pods.pop(self.random.randrange(len(self.pods))), self.space, grace=0, missing_ok=True)

    def step(self):
        what = self.random.choice(
            (self.add_job, self.add_job, self.add_job, self.drop_job, self.drop_job, self.resize_job, self.add_set,
             self.scale_set, self.scale_set, self.roll_set, self.drop_set, self.add_pod, self.drop_pod))  # fmt: skip
        try:
            what()
            self.done[what.__name__] += 1
        except ApiError as e:
            if e.status not in (404, 409):  # it ended in the meantime
                raise

    def elsewhere(self):
        """Pods that run on another node than the one they were released to."""
        return [
            p["metadata"]["name"] for p in self.admin.list("pods", self.space)
            if p["spec"].get("nodeName") and p["metadata"].get("annotations", {}).get("sluice.sh/node") != p["spec"]["nodeName"]
        ]  # fmt: skip


SECONDS = int(os.environ.get("SLUICE_CHURN", "20"))


@pytest.mark.timeout(SECONDS + 900)
def test_churn(held, module_cluster, door):  # noqa: F811
    """Churn for SLUICE_CHURN seconds (make churn: ten minutes). At the end no object is held that should not be, and
    the books hold no room for work that is gone."""
    seconds, seed = SECONDS, int(os.environ.get("SLUICE_SEED", time.time()))
    print(f"seed {seed}")
    space = door()
    churn = Churn(module_cluster, space, seed)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        churn.step()
        time.sleep(churn.random.expovariate(10))
        if churn.number % 20 == 0:
            assert not churn.elsewhere()
    print(dict(churn.done))

    def settled():
        now = pods(module_cluster, space)
        return all(p["status"].get("phase") != "Pending" for p in now) and all(
            j["status"].get("completionTime") for j in module_cluster.admin.list("jobs", space)
        )

    until(settled, 120, "everything that is left runs or is done")
    assert not any(GATE == g["name"] for p in pods(module_cluster, space) for g in p["spec"].get("schedulingGates", []))
    assert not churn.elsewhere()
    clean(held, module_cluster, space)
    free = lambda: all(r["free"] == r["total"] for n in held.nodes().values() for r in n["resources"].values())  # noqa: E731
    until(free, 20, "no share is leaked")
    assert held.metrics().get("sluice_audit_differences_total", 0) == 0

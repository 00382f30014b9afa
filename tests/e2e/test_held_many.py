"""Held work in numbers: a Job wider than any label, many Jobs through few nodes, and churn."""

import collections

import pytest

from cluster import work

from .conftest import crds, until
from .drain import Drain, hooked
from .test_held import check_released, clean, door, running  # noqa: F401

# Names of 60 characters.
CLUSTER = {"node_list": [{"name": "a-node-name-as-long-as-those-of-some-clouds-are-10-0".ljust(56, "x"), "count": 100, "cpu": 4}]}


@pytest.fixture(scope="module")
def held(module_cluster):
    crds(module_cluster)
    # On a busy machine the default scheduler learns of so many nodes late, and refuses what is pinned to them.
    admin, last = module_cluster.admin, sorted(n["metadata"]["name"] for n in module_cluster.admin.list("nodes"))[-1]
    admin.create(work.pod("last", cpu=1, run=1, nodeSelector={"kubernetes.io/hostname": last}))
    until(lambda: admin.get("pods", "last")["status"].get("phase") == "Succeeded", 90, "the scheduler knows all nodes")
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
    result = Drain(module_cluster, held, jobs=60, size=4).held()
    assert result["done"] == 60
    assert result["elsewhere"] == 0, "pods ran where they were not planned"
    assert result["writes_per_pod"] <= 6

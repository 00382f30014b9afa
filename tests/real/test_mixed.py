"""Simulated and real nodes in one cluster: a gang may have pods on both."""

import pytest

from cluster import work
from cluster.patience import until
from cluster.real import RealCluster
from e2e.daemon import Sluiced

from .test_gangs import IMAGE


@pytest.fixture(scope="module")
def mixed():
    with RealCluster("real-mixed", real=2, node_list=[{"name": "sim", "count": 2, "cpu": 2}]) as c, Sluiced(c) as d:
        yield c, d


def test_a_gang_over_both(mixed):
    cluster, daemon = mixed
    for name in ("one", "two"):  # the second finds what the first left
        members = work.gang(name, 4, cpu="1500m", run=3, scheduler="sluice")
        for p in members:
            p["spec"]["containers"][0] |= {"image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "3"]}
        cluster.admin.create_many(members)
    for name in ("one", "two"):
        until(lambda name=name: [p["status"].get("phase") for p in cluster.admin.list("pods", "default")
                                 if p["metadata"]["name"].startswith(f"{name}-")] == ["Succeeded"] * 4)
    used = {p["spec"]["nodeName"] for p in cluster.admin.list("pods", "default") if p["metadata"]["name"].startswith("one-")}
    assert len(used) == 4 and {n.name for n in cluster.nodes} < used, used

"""The daemon is killed at any moment: no gang stays in part for long, no place is lost, no pod is bound twice."""

import random
import time

import pytest

from cluster import work
from cluster.audit import Audit
from cluster.gangs import GangWatch

from .conftest import until
from .daemon import Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 8, "cpu": 4}]}


@pytest.fixture(params=["memory:", "sqlite"])
def daemon(request, module_cluster, tmp_path):
    store = str(tmp_path / "sluice.db") if request.param == "sqlite" else request.param
    with Sluiced(module_cluster, store=store, folder=tmp_path) as d:
        yield d


# Without a store only the cluster remembers, to the second: this promise is the store's.
@pytest.mark.parametrize("daemon", ["sqlite"], indirect=True)
def test_order_survives(daemon, module_cluster, space):
    admin = module_cluster.admin
    for p in work.gang("all", 8, cpu=4, namespace=space, run=3000, scheduler="sluice"):
        admin.create(p)
    until(lambda: daemon.jobs(space).get("all", {}).get("bound") == 8)
    # Names against the order of arrival, all within one second.
    names = ["zulu", "mike", "alpha", "kilo"]
    for name in names:
        for p in work.gang(name, 8, cpu=4, namespace=space, run=1, scheduler="sluice"):
            admin.create(p)

    def order():
        jobs = daemon.jobs(space)
        return [n for n in sorted(jobs, key=lambda n: jobs[n]["position"]) if jobs[n]["state"] == "waiting"]

    until(lambda: order() == names)
    seen = {n: j["firstSeen"] for n, j in daemon.jobs(space).items()}
    daemon.kill()
    daemon.start()
    until(lambda: order() == names)
    assert {n: j["firstSeen"] for n, j in daemon.jobs(space).items()} == seen
    assert daemon.jobs(space)["all"]["state"] == "running"


def test_killed_while_placing(daemon, module_cluster, space):
    admin = module_cluster.admin
    rng = random.Random(7)
    with GangWatch(admin, space) as watch:
        for g in range(12):
            for p in work.gang(f"g{g}", rng.choice([2, 4, 8]), cpu=4, namespace=space, run=1, scheduler="fluence"):
                admin.create(p)
            if g % 3 == 2:
                time.sleep(rng.random() * 0.2)
                daemon.kill()
                daemon.start()
        watch.wait(lambda w: len(w.finished()) == 12, 120)
        assert not watch.half_started()
        assert watch.longest_partial() < 30
    assert not work.overbooked(admin)
    assert not Audit(module_cluster.audit_log).bound_twice(space)


def test_stops_in_good_order(daemon):
    begun = time.monotonic()
    assert daemon.stop() == 0
    assert time.monotonic() - begun < 30, "nothing hangs"
    daemon.start()

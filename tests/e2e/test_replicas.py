"""Several replicas: one decides, the others stand by and take over."""

import pytest

from cluster import work
from cluster.audit import Audit

from .conftest import until
from .daemon import Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 4, "cpu": 4}]}
ELECT = {"leader": {"elect": True, "namespace": "kube-system", "lease": "3s"}}


def test_standby_takes_over(module_cluster, space, tmp_path):
    admin = module_cluster.admin
    folders = [tmp_path / "a", tmp_path / "b"]
    for f in folders:
        f.mkdir()
    a, b = (Sluiced(module_cluster, ELECT, folder=f, user="admin") for f in folders)
    with a, b:
        until(lambda: a.metrics()["sluice_leader"] + b.metrics()["sluice_leader"] == 1)
        first, second = (a, b) if a.metrics()["sluice_leader"] else (b, a)
        for p in work.gang("one", 4, cpu=4, namespace=space, run=1, scheduler="sluice"):
            admin.create(p)
        work.wait_phase(admin, [f"one-{i}" for i in range(4)], "Succeeded", space)
        for p in work.gang("two", 5, pods=4, cpu=4, namespace=space, run=1, scheduler="sluice"):
            admin.create(p)
        until(lambda: second.jobs(space).get("two"))
        first.kill()
        admin.create(work.gang("two", 5, cpu=4, namespace=space, run=1, scheduler="sluice")[4])
        for p in work.gang("three", 4, cpu=4, namespace=space, run=1, scheduler="sluice"):
            admin.create(p)
        work.wait_phase(admin, [f"three-{i}" for i in range(4)], "Succeeded", space, timeout=40)
        assert second.metrics()["sluice_leader"] == 1
    assert not Audit(module_cluster.audit_log).bound_twice(space)


def test_sqlite_is_for_one(module_cluster, tmp_path):
    with pytest.raises(RuntimeError, match="postgres://"):
        Sluiced(module_cluster, ELECT, store=str(tmp_path / "x.db"), folder=tmp_path, user="admin").start()

"""Many pods at once and gangs that come together: every pod bound once, and the machine kept busy."""

import time

from cluster import work
from cluster.audit import Audit
from cluster.gangs import GangWatch
from cluster.seed import seed

from .conftest import until

CLUSTER = {"node_list": [{"name": "node", "count": 4, "cpu": 128, "memory": "256Gi", "pods": 500}]}
SLUICE = "system:serviceaccount:sluice-system:sluice"


def test_burst(sluiced, module_cluster, space):
    """A few hundred pods appear at once: none fails, none is bound twice, each gets its event, two requests a pod."""
    admin = module_cluster.admin
    audit = Audit(module_cluster.audit_log).skip()
    pods = [work.pod(f"single-{i}", cpu="100m", namespace=space, run=3600, scheduler="sluice") for i in range(200)]
    for g in range(10):
        pods += work.gang(f"gang-{g}", 20, cpu="100m", namespace=space, run=3600, scheduler="sluice")
    with GangWatch(admin, space) as watch:
        seed(module_cluster, pods)
        until(lambda: len(audit.bound(space)) == len(pods), 60, "all are bound")
        until(lambda: sum(g.whole_at is not None for g in watch.snapshot().values()) == 10, 20, "all gangs are whole")
    assert not watch.half_started()
    assert [b for b in audit.bindings(space) if not b.ok] == []
    assert not audit.bound_twice(space)

    def scheduled():
        return [e for e in admin.list("events", space) if e["reason"] == "Scheduled"]

    until(lambda: len(scheduled()) == len(pods), 60, "each pod has its event")
    assert {e["involvedObject"]["name"] for e in scheduled()} == {p["metadata"]["name"] for p in pods}
    assert all(e["reportingComponent"] == "sluice" for e in scheduled())
    m = sluiced.metrics()
    assert m["sluice_scheduled_events_lost_total"] == 0 and m["sluice_bind_failures_total"] == 0
    writes = sum(n for (verb, what, _), n in audit.requests(SLUICE).items()
                 if verb in ("create", "patch", "update") and what in ("events", "pods/binding", "pods", "pods/status"))  # fmt: skip
    assert writes <= 2.2 * len(pods)


def test_together(sluiced, module_cluster, space):
    """Gangs that came together: the long one, submitted last, does not run alone at the end beside an idle machine."""
    admin = module_cluster.admin
    limit = {"scheduler": "sluice", "namespace": space, "cpu": 100}
    with GangWatch(admin, space) as watch:
        admin.create_many(work.gang("first", 4, run=600, activeDeadlineSeconds=1200, **limit))
        until(lambda: any(name[1] == "first" and g.whole_at for name, g in watch.snapshot().items()))
        begun = time.time()
        for i in range(12):
            admin.create_many(work.gang(f"short-{i:02d}", 1, run=2, activeDeadlineSeconds=3, **limit))
        admin.create_many(work.gang("long", 1, run=9, activeDeadlineSeconds=10, **limit))
        until(lambda: sum(j["state"] == "waiting" for j in sluiced.jobs(space).values()) == 13, message="all are known")
        for i in range(4):
            admin.patch("pods", f"first-{i}", {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}}, space)
        watch.wait(lambda w: len(w.finished()) == 14)
        gangs = {name[1]: g for name, g in watch.snapshot().items()}
    # As submitted it would start after the last short one.
    after = [n for n, g in gangs.items() if n.startswith("short") and g.running_at > gangs["long"].running_at]
    assert len(after) >= 6, (after, {n: round(g.running_at - begun, 1) for n, g in gangs.items()})

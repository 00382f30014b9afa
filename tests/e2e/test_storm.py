"""An API server that answers 429 to most of what it is asked, for as long as the work lasts."""

import threading

from cluster import ApiError, work
from cluster.audit import Audit

from .conftest import until
from .daemon import Sluiced

CLUSTER = {
    "node_list": [{"name": "node", "count": 10, "cpu": 8}],
    "args": {"apiserver": ["--enable-priority-and-fairness=false", "--max-requests-inflight=40", "--max-mutating-requests-inflight=2"]},
}
GANGS, SIZE = 20, 4


def test_a_storm_of_429(module_cluster):
    """Every gang starts whole and nothing is bound twice, though the server refuses writes by the hundred."""
    admin, over = module_cluster.admin, threading.Event()

    def noise():
        """Writes of somebody else, who has the server's places whenever one is free."""
        while not over.is_set():
            try:
                admin.patch("namespaces", "default", {"metadata": {"annotations": {"noise": "x" * 1000}}}, None)
            except (ApiError, OSError):
                pass

    with Sluiced(module_cluster) as d:
        others = [threading.Thread(target=noise) for _ in range(4)]
        for t in others:
            t.start()
        try:
            for i in range(GANGS):
                admin.create_many(work.gang(f"g{i}", SIZE, cpu=1, namespace="default", run=600, scheduler="sluice"))
            until(lambda: sum(bool(p["spec"].get("nodeName")) for p in admin.list("pods", "default")) == GANGS * SIZE, 300,
                  "every gang has its nodes")  # fmt: skip
            throttled = d.metrics()["sluice_api_throttled_total"]
        finally:
            over.set()
            for t in others:
                t.join()
        print(f"{GANGS * SIZE} pods bound, {throttled:.0f} answers 429")
        assert throttled >= 10, "no storm: this shows nothing"
        until(lambda: all(j["state"] == "running" for j in d.jobs("default").values()) and len(d.jobs("default")) == GANGS)
        assert not Audit(module_cluster.audit_log).bound_twice("default")
        assert d.metrics()["sluice_audit_differences_total"] == 0

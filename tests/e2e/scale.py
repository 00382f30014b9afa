"""Many gangs on many nodes: bindings per second, partial gangs, requests per pod, memory.

    hack/cluster/python tests/e2e/scale.py [--nodes 1000] [--gangs 500] [--size 20] [--pods 10000] [--default]
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Cluster, work  # noqa: E402
from cluster.audit import Audit  # noqa: E402
from cluster.gangs import GangWatch  # noqa: E402
from cluster.seed import seed  # noqa: E402
from e2e.daemon import Sluiced  # noqa: E402


def pods_of(o, scheduler, space):
    singles = [work.pod(f"single-{i}", cpu=1, namespace=space, run=3600, scheduler=scheduler) for i in range(o.pods)]
    groups = [p for g in range(o.gangs)
              for p in work.gang(f"gang-{g}", o.size, cpu=1, namespace=space, run=3600, scheduler=scheduler)]  # fmt: skip
    return singles + groups


def measure(cluster, o, scheduler, daemon=None):
    """Pods are there before the scheduler is started; counted from then to the last binding."""
    space = f"scale-{scheduler}"
    cluster.namespace(space)
    pods = pods_of(o, scheduler, space)
    begun = time.time()
    seed(cluster, pods)
    print(f"  {len(pods)} pods seeded in {time.time() - begun:.1f} s", flush=True)
    audit = Audit(cluster.audit_log)
    audit.read()
    with GangWatch(cluster.admin, space) as watch:
        if daemon:
            daemon.start(60)
        else:
            cluster.start("scheduler")
        last, moved = 0, time.time()
        while last < len(pods) and time.time() - moved < 60:
            now = len(audit.bound(space))
            if now != last:
                last, moved = now, time.time()
            time.sleep(0.2)
        partial = watch.longest_partial()
        whole = sum(g.whole_at is not None for g in watch.snapshot().values())
    times = sorted(b.time for b in audit.bindings(space) if b.ok)
    rate = (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0
    print(f"  {scheduler}: {len(times)} of {len(pods)} bound, {rate:.0f} bindings/s over {times[-1] - times[0]:.1f} s; "
          f"gangs whole {whole} of {o.gangs}, longest in part {partial:.2f} s", flush=True)  # fmt: skip
    if daemon:
        user = "system:serviceaccount:sluice-system:sluice"
        writes = {k: n for k, n in audit.requests(user).items() if k[0] in ("create", "patch", "update")}
        print(f"  requests per pod {sum(writes.values()) / max(1, len(times)):.2f} {writes}")
        m = daemon.metrics()
        print(f"  resident memory {daemon.rss() / 2**20:.0f} MiB, longest cycle {m['sluice_cycle_seconds_max'] * 1000:.0f} ms, "
              f"cycles {m['sluice_cycles_total']:.0f}")  # fmt: skip
    assert not audit.bound_twice(space)
    return rate


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--nodes", type=int, default=1000)
    a.add_argument("--gangs", type=int, default=500)
    a.add_argument("--size", type=int, default=20)
    a.add_argument("--pods", type=int, default=10000)
    a.add_argument("--default", action="store_true", help="the default scheduler too")
    o = a.parse_args()
    entry = {"name": "node", "count": o.nodes, "cpu": 64, "memory": "256Gi", "per": {"rack": 20}}
    with Cluster("scale", node_list=[entry], without=("scheduler",)) as c:
        if o.default:
            measure(c, o, "default-scheduler")
            c.stop("scheduler")
        d = Sluiced(c, {"kube": {"qps": 10000, "burst": 10000}})
        try:
            measure(c, o, "sluice", d)
        finally:
            d.__exit__()


if __name__ == "__main__":
    main()

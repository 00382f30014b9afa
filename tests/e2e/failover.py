"""How long a full cluster is without decisions when the leader dies.

    hack/cluster/python tests/e2e/failover.py [--nodes 5000] [--pods 50000] [--rounds 3] [--lease 5]

Two replicas on a PostgreSQL of their own.  The leader is killed; a pod that waits for it was submitted just
before.  The clock starts when the lease ends (its last renewal plus its duration, as the Lease object says) and
stops when the API server has bound the pod.
"""

import argparse
import os
import sys
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Audit, Cluster, seed, work  # noqa: E402
from cluster.nodes import expand  # noqa: E402
from e2e.conftest import crds, until  # noqa: E402
from e2e.daemon import Sluiced  # noqa: E402
from store.postgres import Postgres  # noqa: E402


def lease_end(cluster):
    spec = cluster.admin.get("leases", "sluice", "sluice-system")["spec"]
    renewed = datetime.fromisoformat(spec["renewTime"].replace("Z", "+00:00")).timestamp()
    return renewed + spec["leaseDurationSeconds"]


def cpu(d):
    """Seconds of CPU the daemon has used."""
    fields = Path(f"/proc/{d.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def steps(d, end):
    """What the new leader said since then: how long after the end of the lease."""
    said = []
    for line in d.log.read_text().splitlines():
        when, _, rest = line.partition("Z ")
        for what in ("store read", "leading", "first cycle"):
            if what in rest:
                said.append((what, datetime.fromisoformat(when + "+00:00").timestamp() - end))
    return ", ".join(f"{what} {at:.2f}" for what, at in said if at > -1)


def leads(d):
    try:
        return d.process.poll() is None and d.metrics()["sluice_leader"] == 1
    except OSError:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lease", type=int, default=5)
    o = parser.parse_args()
    config = {"leader": {"elect": True, "lease": f"{o.lease}s"}, "status": {"interval": "60s"}}
    with Cluster("failover", node_list=[]) as cluster, Postgres() as pg:
        crds(cluster)
        cluster.namespace("full")
        seed(cluster, expand({"name": "node", "count": o.nodes, "cpu": 16}))
        seed(cluster, [
            work.running(work.pod(f"p{i}", cpu=1, namespace="full", node=f"node-{i % o.nodes:04d}", restart="Always",
                                  scheduler="sluice" if i % 2 else None))
            for i in range(o.pods)
        ])  # fmt: skip
        audit = Audit(cluster.audit_log)
        team = [Sluiced(cluster, config, store=pg.url, verify=False) for _ in range(2)]
        took = []
        try:
            for d in team:
                d.start(120)
            until(lambda: any(map(leads, team)), 60)
            for k in range(o.rounds):
                leader = next(d for d in team if leads(d))
                other = next(d for d in team if d is not leader)
                until(other.ready, 120)
                time.sleep(o.lease)  # the standby is warm and idle
                used = cpu(other)
                leader.kill()
                end = lease_end(cluster)
                name = f"waits{k}"
                cluster.admin.create(work.pod(name, cpu=1, namespace="full", scheduler="sluice", restart="Always"))
                until(lambda: audit.bound("full")[("full", name)], o.lease + 60)
                bound = next(b.time for b in audit.bindings("full") if b.pod == name and b.ok)
                took.append(bound - end)
                print(f"round {k + 1}: bound {bound - end:.2f} s after the lease ended ({steps(other, end)}); "
                      f"{cpu(other) - used:.2f} s of CPU", flush=True)  # fmt: skip
                leader.start(120)
        finally:
            for d in team:
                if d.process and d.process.poll() is None:
                    d.kill()
    print(f"worst of {len(took)}: {max(took):.2f} s")


if __name__ == "__main__":
    main()

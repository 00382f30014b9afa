"""A restart with a long queue: from the start of the process to its first decision.

    hack/cluster/python tests/e2e/backlog.py [--jobs 100000] [--nodes 1000] [--json FILE]

Every node is full, and the jobs wait: in the cluster as pods, in the store with their order.  sluiced is killed, one
pod ends, sluiced is started again; the clock stops when the API server has bound the job whose turn it is.  A bare
client reads the same lists: that is the API server's share.
"""

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Cluster, work  # noqa: E402
from cluster.audit import Audit  # noqa: E402
from cluster.nodes import expand  # noqa: E402
from cluster.seed import seed  # noqa: E402
from e2e.conftest import until  # noqa: E402
from e2e.daemon import Sluiced  # noqa: E402
from e2e.large import read_lists, seen  # noqa: E402

NOTHING_ELSE = ("scheduler", "controller-manager", "kwok")


def kept(file):
    """Jobs in the store; -1 while it cannot be read."""
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=1) as db:
            return db.execute("SELECT COUNT(*) FROM jobs").fetchone()[0]
    except sqlite3.OperationalError:
        return -1


def said(d, what, since):
    """When the daemon logged it, first after that moment."""
    for line in d.log.read_text().splitlines():
        when, _, rest = line.partition("Z ")
        if what in rest:
            at = datetime.fromisoformat(when + "+00:00").timestamp()
            if at >= since:
                return at
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100000)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--json", help="where the figures go")
    o = parser.parse_args()
    with Cluster(f"backlog-{os.getpid()}", node_list=[], without=NOTHING_ELSE) as c, tempfile.TemporaryDirectory() as folder:
        nodes = list(expand({"name": "node", "count": o.nodes, "cpu": 16}))
        names = [n["metadata"]["name"] for n in nodes]
        seed(c, nodes)
        seed(c, [work.running(work.pod(f"full{i}", cpu=16, run=86400, node=n)) for i, n in enumerate(names)])
        seed(c, [work.pod(f"w{i:06d}", cpu=16, run=86400, scheduler="sluice") for i in range(o.jobs)])
        seen(c.admin)
        lists = read_lists(c.admin)
        store = Path(folder) / "sluice.db"
        d = Sluiced(c, {"status": {"interval": "600s"}}, store=str(store), folder=folder, verify=False)
        try:
            d.start(240)
            until(lambda: kept(store) >= o.jobs and d.metrics()["sluice_store_waiting"] == 0, 240, "all jobs in the store")
            d.kill()
            c.admin.delete("pods", "full0", "default", grace=0)
            audit = Audit(c.audit_log).skip()
            begun = time.time()
            d.start(240)
            until(lambda: any(b.ok and b.time > begun for b in audit.bindings("default")), 120, "the first binding")
            bound = next(b for b in audit.bindings("default") if b.ok and b.time > begun)
            row = {
                "jobs": o.jobs, "nodes": o.nodes, "lists_bare_s": lists, "first": bound.pod,
                "store_read_s": said(d, "store read", begun) - begun,
                "lists_s": said(d, "mirror complete", begun) - begun,
                "first_cycle_s": said(d, "first cycle", begun) - said(d, "mirror complete", begun),
                "bound_s": bound.time - begun,
            }  # fmt: skip
        finally:
            if d.process and d.process.poll() is None:
                d.kill()
    for k, v in row.items():
        print(f"{k:16} {v if not isinstance(v, float) else round(v, 2)}")
    print(f"{row['bound_s'] - row['lists_bare_s']:.2f} s besides the lists (a bare client needs {lists:.2f} s for them)")
    if o.json:
        Path(o.json).write_text(json.dumps(row, indent=1))


if __name__ == "__main__":
    main()

"""A large cluster: the time from the start to the first decision, and memory, at rest and while placing.

    hack/cluster/python tests/e2e/large.py [--nodes 5000] [--pods 50000] [--place 2000] [--json FILE]

The nodes, the running pods of other schedulers and the pods to place (half of them in gangs of 20) exist before
sluiced starts.  A bare client reads the same lists first: that is the API server's share of the start.
"""

import argparse
import json
import os
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import ApiError, Cluster, work  # noqa: E402
from cluster.audit import Audit  # noqa: E402
from cluster.seed import seed  # noqa: E402
from e2e.daemon import Sluiced  # noqa: E402

PROTOBUF = "application/vnd.kubernetes.protobuf"


def read_lists(api, page=500):
    """Seconds a client needs to read nodes and pods in pages, doing nothing with them but to find the next page."""
    def read(path):
        token = None
        while True:
            query = {"limit": page} | ({"continue": token} if token else {})
            # The token is base64 of {"v":...: that is enough to find it.
            found = re.search(r"eyJ2Ijoi[\w-]+", api.request("GET", path, query=query, accept=PROTOBUF))
            if not found:
                return
            token = found[0]

    begun = time.time()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(read, ["/api/v1/nodes", "/api/v1/pods"]))
    return time.time() - begun


def seen(api):
    """Until the API server's own cache has what was put into etcd."""
    version = api.list_full("pods", limit=1)["metadata"]["resourceVersion"]
    while True:
        try:
            api.list_full("pods", limit=1, resourceVersion=version, resourceVersionMatch="NotOlderThan")
            return
        except ApiError as e:
            if e.status != 504:
                raise


def peak(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--nodes", type=int, default=5000)
    a.add_argument("--pods", type=int, default=50000)
    a.add_argument("--place", type=int, default=2000)
    a.add_argument("--json", help="where the figures go")
    o = a.parse_args()
    entry = {"name": "node", "count": o.nodes, "cpu": 32, "memory": "128Gi", "per": {"rack": 20}}
    with Cluster(f"large-{os.getpid()}", node_list=[entry], without=("scheduler", "controller-manager", "kwok")) as c:
        names = [n["metadata"]["name"] for n in c.admin.list("nodes")]
        seed(c, [work.running(work.pod(f"p{i}", cpu=1, run=3600, node=names[i % len(names)])) for i in range(o.pods)])
        waiting = [work.pod(f"s{i}", cpu=1, run=3600, scheduler="sluice") for i in range(o.place // 2)]
        for g in range(o.place // 40):
            waiting += work.gang(f"g{g}", 20, cpu=1, run=3600, scheduler="sluice")
        seed(c, waiting)
        seen(c.admin)
        row = {"nodes": o.nodes, "pods": o.pods, "place": len(waiting), "lists_bare_s": read_lists(c.admin)}
        audit = Audit(c.audit_log).skip()
        d = Sluiced(c, {"kube": {"qps": 10000, "burst": 10000}}, verify=False)
        begun = time.time()
        try:
            d.start(120)
            while len(audit.bound()) < len(waiting) and time.time() - begun < 300:
                time.sleep(0.2)
            times = sorted(b.time for b in audit.bindings() if b.ok)
            m = d.metrics()
            row |= {"first_binding_s": times[0] - begun, "lists_s": m["sluice_start_lists_seconds"],
                    "first_cycle_s": m["sluice_start_cycle_seconds"], "bound": len(times),
                    "rate": (len(times) - 1) / (times[-1] - times[0]), "peak_mib": peak(d.process.pid)}  # fmt: skip
            time.sleep(3)
            row |= {"rss_mib": d.rss() / 2**20, "load": os.getloadavg()[0]}
            begun = time.time()
            c.admin.create_many(work.gang("never", 4, cpu=99, run=1, scheduler="sluice"))
            while d.jobs().get("never", {}).get("state") != "never" and time.time() - begun < 30:
                time.sleep(0.02)
            row["never_s"] = time.time() - begun
        finally:
            d.__exit__()
    print(f"{o.nodes} nodes, {o.pods} pods of others, {len(waiting)} to place, load {row['load']:.1f}")
    print(f"  lists read by a bare client {row['lists_bare_s']:.2f} s; by sluiced {row['lists_s']:.2f} s")
    print(f"  start to first binding {row['first_binding_s']:.2f} s, of this the first cycle {row['first_cycle_s']:.3f} s")
    print(f"  memory at rest {row['rss_mib']:.0f} MiB, peak {row['peak_mib']:.0f} MiB; {row['bound']} bound, {row['rate']:.0f}/s")
    print(f"  \"can never run\" after {row['never_s']:.2f} s")
    if o.json:
        Path(o.json).write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Many gangs on many nodes: bindings per second of a bare client, of the default scheduler and of Sluice.

    hack/cluster/python tests/e2e/scale.py [--nodes 1000] [--gangs 500] [--size 20] [--pods 10000] [--rounds 2]
                                           [--who bare,default,sluice] [--json FILE]

All three get the same pods on the same API server in the same run, in turn; the order rotates from round to round, so
that neither a growing database nor other work on the machine favours one of them.  The pods exist before the contender
starts.  The simulated kubelets stand still during a round (--kubelets lets them run): how soon they report a started
pod depends on chance, and each report costs the server as much as a binding.  The rate is counted from the first to the
last binding in the audit log, while a watch observes the gangs from outside.  The bare client is bench/bind.c: it is
given the node of each pod, keeps 64 bindings in flight and does nothing else.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Cluster, work  # noqa: E402
from cluster.audit import Audit  # noqa: E402
from cluster.gangs import GangWatch  # noqa: E402
from cluster.seed import seed, unseed  # noqa: E402
from e2e.daemon import Sluiced, program  # noqa: E402

SLUICE = "system:serviceaccount:sluice-system:sluice"
PARTS = {"kube-apiserver": "server", "etcd": "etcd", "kwok": "kwok", "kube-controller-manager": "manager"}


def cpu(pid):
    """Seconds of CPU a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of(cluster):
    return {short: cpu(cluster.processes[c].pid) for c, short in PARTS.items() if cluster.processes[c].pid}


def settle(cluster, timeout=60):
    """Until the cluster has nothing to do any more."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        before = sum(cpu_of(cluster).values())
        time.sleep(1)
        if sum(cpu_of(cluster).values()) - before < 0.3:
            return


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0


class Bare:
    """The ceiling: a client that only binds."""

    name, scheduler = "bare", "nobody"

    def __init__(self, cluster, o):
        self.cluster = cluster

    def start(self, space, pods, nodes):
        lines = "".join(f"{p['metadata']['name']} {nodes[i % len(nodes)]}\n" for i, p in enumerate(pods))
        self.child = subprocess.Popen(
            [str(program("bench/bench-bind")), str(self.cluster.kubeconfig), space, "-", str(len(pods)), "64", "-"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)  # fmt: skip
        self.child.stdin.write(lines)
        self.child.stdin.close()
        return self.child.pid

    def figures(self):
        return {}

    def stop(self):
        self.child.wait(60)


class Default:
    """kube-scheduler as it is delivered, without its limit of 50 requests a second."""

    name, scheduler = "default", "default-scheduler"

    def __init__(self, cluster, o):
        self.cluster = cluster

    def start(self, space, pods, nodes):
        self.cluster.start("scheduler")
        return self.cluster.processes["kube-scheduler"].pid

    def figures(self):
        return {}

    def stop(self):
        self.cluster.stop("scheduler")


class Sluice:
    name, scheduler = "sluice", "sluice"

    def __init__(self, cluster, o):
        self.cluster, self.keep = cluster, o.log

    def start(self, space, pods, nodes):
        self.d = Sluiced(self.cluster, {"kube": {"qps": 10000, "burst": 10000}}, verify=False)
        self.d.start(60)
        return self.d.process.pid

    def figures(self):
        m = self.d.metrics()
        status = Path(f"/proc/{self.d.process.pid}/status").read_text()
        peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        took = [int(w.split("=")[1]) / 1e6 for line in self.d.log.read_text().splitlines() if "gang placed" in line
                for w in line.split() if w.startswith("took_us=")]  # fmt: skip
        return {"rss_mib": self.d.rss() / 2**20, "peak_mib": peak / 1024,
                "window": m["sluice_writes_window"], "halved": m["sluice_writes_window_halved_total"],
                "cycle_max_ms": m["sluice_cycle_seconds_max"] * 1000,
                "decided_bound_p50_s": percentile(took, 0.5), "decided_bound_p99_s": percentile(took, 0.99)}  # fmt: skip

    def stop(self):
        if self.keep:
            Path(self.keep).write_bytes(self.d.log.read_bytes())
        self.d.__exit__()


CONTENDERS = {c.name: c for c in (Bare, Default, Sluice)}


def pods_of(o, scheduler, space):
    singles = [work.pod(f"single-{i}", cpu=1, namespace=space, run=3600, scheduler=scheduler) for i in range(o.pods)]
    groups = [p for g in range(o.gangs)
              for p in work.gang(f"gang-{g}", o.size, cpu=1, namespace=space, run=3600, scheduler=scheduler)]  # fmt: skip
    return singles + groups


def measure(cluster, o, contender, space, nodes):
    cluster.namespace(space)
    pods = pods_of(o, contender.scheduler, space)
    seed(cluster, pods)
    settle(cluster)
    if not o.kubelets:
        cluster.processes["kwok"].pause()
    audit = Audit(cluster.audit_log).skip()
    with GangWatch(cluster.admin, space, labels="fluence.group-size") as watch:
        before = cpu_of(cluster)
        begun = time.time()
        pid = contender.start(space, pods, nodes)
        own = cpu(pid)
        last, moved, seen = 0, time.time(), 0
        while last < len(pods) and time.time() - moved < 60:
            time.sleep(0.5)
            own = cpu(pid) if Path(f"/proc/{pid}").exists() else own
            now = len(audit.bound(space))
            if now != last:
                last, moved = now, time.time()
                seen = cpu_of(cluster)
        time.sleep(0.5)
        partial = watch.longest_partial()
        whole = sum(g.whole_at is not None for g in watch.snapshot().values())
        row = contender.figures()
    bindings = audit.bindings(space)
    times = sorted(b.time for b in bindings if b.ok)
    span = times[-1] - times[0] if len(times) > 1 else 1e9
    row |= {"contender": contender.name, "bound": len(times), "pods": len(pods), "rate": (len(times) - 1) / span,
            "seconds": span, "first_s": times[0] - begun if times else None, "whole": whole, "gangs": o.gangs,
            "longest_part_s": partial, "failed": sum(not b.ok for b in bindings),
            "cpu_ms_per_pod": {k: (seen[k] - before[k]) * 1000 / len(pods) for k in before} | {"own": own * 1000 / len(pods)},
            "load": os.getloadavg()[0]}  # fmt: skip
    if contender.name == "sluice":
        contender_writes(row, audit, len(pods))
    contender.stop()
    unseed(cluster, space)
    cluster.processes["kwok"].resume()
    settle(cluster)
    assert not audit.bound_twice(space)
    return row


def contender_writes(row, audit, pods):
    """What it asked of the server; what is still to come (events) is waited for."""
    def writes():
        return {k: n for k, n in audit.requests(SLUICE).items() if k[0] in ("create", "patch", "update")}

    last, end = writes(), time.time() + 120
    while time.time() < end:
        time.sleep(2)
        now = writes()
        if now == last:
            break
        last = now
    row["requests_per_pod"] = sum(last.values()) / pods
    row["requests"] = {" ".join(map(str, k)): n for k, n in sorted(last.items())}
    row["events"] = sum(n for k, n in last.items() if k[:2] == ("create", "events") and k[2] == 201)


def show(row):
    c = row["cpu_ms_per_pod"]
    print(f"{row['contender']:<9}{row['bound']:>7}{row['rate']:>9.0f}{row['seconds']:>8.1f}{row['first_s']:>8.2f}"
          f"{row['whole']:>7}{row['longest_part_s']:>8.2f}{row['failed']:>7}   "
          + " ".join(f"{k} {v:.2f}" for k, v in c.items()), flush=True)  # fmt: skip
    if row["contender"] == "sluice":
        print(f"         memory {row['rss_mib']:.0f} MiB, peak {row['peak_mib']:.0f}; decided to bound p50 {row['decided_bound_p50_s']:.2f} s, "
              f"p99 {row['decided_bound_p99_s']:.2f} s; {row['requests_per_pod']:.2f} requests per pod, {row['events']} events; "
              f"longest cycle {row['cycle_max_ms']:.0f} ms; window {row['window']:.0f}, halved {row['halved']:.0f} times", flush=True)  # fmt: skip
        print(f"         {row['requests']}")


def compare(rows, who, rounds):
    """Ratios are taken within a round, where other work on the machine hits both alike; their median counts.  The
    CPU a binding costs in all (server, etcd, the simulated kubelets, the manager, the scheduler) hardly depends on
    what else runs: a machine with nothing else to do is as fast as that allows."""
    of = {w: [r for r in rows if r["contender"] == w] for w in who}
    out = {w: {"rate": statistics.median(r["rate"] for r in of[w]),
               "cpu_ms_per_pod": statistics.median(sum(r["cpu_ms_per_pod"].values()) for r in of[w])} for w in who}  # fmt: skip
    for w in who:
        print(f"{w:<9}{out[w]['rate']:>7.0f} bindings/s (median of {rounds}), {out[w]['cpu_ms_per_pod']:.2f} ms of CPU per pod in all")
    for other in ("bare", "default"):
        if other in of and "sluice" in of:
            pairs = [a["rate"] / b["rate"] for a, b in zip(of["sluice"], of[other])]
            bill = [sum(b["cpu_ms_per_pod"].values()) / sum(a["cpu_ms_per_pod"].values()) for a, b in zip(of["sluice"], of[other])]
            out[f"sluice/{other}"] = {"rate": statistics.median(pairs), "pairs": pairs, "cpu": statistics.median(bill)}
            print(f"sluice / {other}: rate {statistics.median(pairs):.2f} ({min(pairs):.2f} to {max(pairs):.2f}), "
                  f"by the CPU it costs {statistics.median(bill):.2f}")  # fmt: skip
    return out


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--nodes", type=int, default=1000)
    a.add_argument("--gangs", type=int, default=500)
    a.add_argument("--size", type=int, default=20)
    a.add_argument("--pods", type=int, default=10000)
    a.add_argument("--rounds", type=int, default=2)
    a.add_argument("--who", default="bare,default,sluice")
    a.add_argument("--kubelets", action="store_true", help="let the simulated kubelets work meanwhile")
    a.add_argument("--json", help="where the figures go")
    a.add_argument("--log", help="keep sluiced's log here")
    o = a.parse_args()
    who = o.who.split(",")
    entry = {"name": "node", "count": o.nodes, "cpu": 64, "memory": "256Gi", "per": {"rack": 20}}
    rows = []
    print(f"{'':<9}{'bound':>7}{'per s':>9}{'s':>8}{'first':>8}{'whole':>7}{'part':>8}{'failed':>7}   CPU ms per pod")
    with Cluster(f"scale-{os.getpid()}", node_list=[entry], without=("scheduler",)) as c:
        nodes = [n["metadata"]["name"] for n in c.admin.list("nodes")]
        for r in range(o.rounds):
            for name in who if r % 2 == 0 else reversed(who):
                rows.append(measure(c, o, CONTENDERS[name](c, o), f"{name}-{r}", nodes))
                show(rows[-1])
    summary = compare(rows, who, o.rounds)
    if o.json:
        Path(o.json).write_text(json.dumps({"options": vars(o), "summary": summary, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

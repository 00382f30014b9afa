"""Many held Jobs through few nodes, against the same Jobs unsuspended at once under the default scheduler.

    hack/cluster/python tests/e2e/drain.py [--jobs 2000] [--size 4] [--nodes 100] [--run 1] [--rounds 1] [--hold true] [--json FILE]

Both schedulers get the same Jobs on the same API server in the same run, in turn.  Held: the Jobs are made in a held
namespace with sluice.sh/begin at one moment in the future, and time runs from that moment to the last Job's
completion.  Default: the Jobs are made suspended in a free namespace, and time runs from the first request that
resumes one (16 at a time) to the last completion.  Ended Jobs stay until the end, so that neither run waits for the
removal of the other's objects.  Writes are counted in the API server's audit log.  "cpu" is what all programs of the
cluster and the daemon used in that time, in seconds; on a machine that does other work, too, it says more than the
time.
"""

import argparse
import contextlib
import itertools
import json
import os
import sys
import time
from pathlib import Path

import yaml

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Cluster, until, work  # noqa: E402
from cluster.audit import Audit  # noqa: E402
from cluster.ports import free_ports  # noqa: E402
from e2e.conftest import crds  # noqa: E402
from e2e.daemon import ROOT, Sluiced  # noqa: E402

SLUICE = "system:serviceaccount:sluice-system:sluice"
WRITES = ("create", "update", "patch", "delete")
TICKS = os.sysconf("SC_CLK_TCK")
_number = itertools.count(1)


def hooks(port):
    """deploy/webhook.yaml with its Service replaced by this machine's port."""
    objects = list(yaml.safe_load_all((ROOT / "deploy" / "webhook.yaml").read_text()))
    config = next(o for o in objects if o["kind"] == "MutatingWebhookConfiguration")
    for hook in config["webhooks"]:
        hook["clientConfig"] = {"url": f"https://localhost:{port}{hook['clientConfig']['service']['path']}"}
    return config


class Hooked(Sluiced):
    """Started when the API server asks it about new pods: it reads a changed configuration a moment later."""

    def start(self, timeout=0):
        super().start(timeout)
        space = self.cluster.admin.path("pods", namespace="door-probe")
        probe = work.pod("probe", namespace="door-probe")
        until(lambda: self.cluster.admin.request("POST", space + "?dryRun=All", probe)["spec"]["schedulingGates"], message="the webhook is asked")
        return self

    __enter__ = start


@contextlib.contextmanager
def hooked(cluster, verify=True, **settings):
    """A daemon with its webhook in force."""
    (port,) = free_ports(1)
    cluster.namespace("door-probe", labels={"sluice.sh/hold": "true"})
    cluster.admin.apply(hooks(port))
    settings = {"webhook": {"enabled": True, "listen": f"127.0.0.1:{port}", "names": ["localhost"]}, **settings}
    with Hooked(cluster, config=settings, folder=os.environ.get("SLUICE_LOGS"), verify=verify) as d:
        d.hook_port = port
        yield d


class Drain:
    def __init__(self, cluster, daemon, jobs, size, run=1, cpu=1, alone=False, hold="true"):
        self.cluster, self.daemon, self.jobs, self.size, self.run, self.cpu = cluster, daemon, jobs, size, run, cpu
        self.hold = hold
        self.alone = alone  # the cluster is there for this: progress is told, nothing is removed

    def _job(self, i, space, begin=None, suspend=False):
        job = work.job(f"job-{i}", pods=self.size, namespace=space, cpu=self.cpu, run=self.run, backoff=6)
        if begin:
            job["metadata"]["annotations"] = {"sluice.sh/begin": str(begin)}
        job["spec"]["suspend"] = suspend
        return job

    def _cpu(self):
        """Seconds of processor time so far, by program."""
        pids = {c: p.pid for c, p in self.cluster.processes.items()} | {"sluiced": self.daemon.process.pid}
        used = {}
        for name, pid in pids.items():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used[name] = (int(fields[11]) + int(fields[12])) / TICKS
        return used

    def _used(self, before):
        return {k: round(v - before[k], 1) for k, v in self._cpu().items()}

    def _wait(self, space, timeout):
        """Until all Jobs are complete; (how many, the last completion as seconds since 1970, most memory seen)."""
        begin = said = time.monotonic()
        end, rss, before = begin + timeout, 0, self._cpu()
        while True:
            # Looking must not slow down what it looks at: seldom while many are left, and only at those.
            left = self.cluster.admin.list("jobs", space, fields=f"status.successful!={self.size}")
            left = [j for j in left if not j["status"].get("completionTime")]
            done = self.jobs - len(left)
            rss = max(rss, self.daemon.rss())
            if self.alone and time.monotonic() - said > 30:
                said = time.monotonic()
                used = sum(self._used(before).values())
                print(f"  {said - begin:6.0f} s: {done} done, {used:.0f} s of processor", file=sys.stderr, flush=True)
            if not left:
                found = self.cluster.admin.list("jobs", space)
                done = sum("completionTime" in j["status"] for j in found)
            if done == self.jobs or time.monotonic() > end:
                return done, time.time(), rss
            time.sleep(min(5, max(0.2, len(left) / 100)))

    def _finish(self, space):
        pods = self.cluster.admin.list("pods", space)
        elsewhere = sum(
            p["metadata"].get("annotations", {}).get("sluice.sh/node", p["spec"].get("nodeName")) != p["spec"].get("nodeName")
            for p in pods
        )
        if not self.alone:
            self.cluster.admin.delete("namespaces", space, None)
        return elsewhere

    @staticmethod
    def _writes(audit, user=None):
        return {" ".join(map(str, k)): n for k, n in sorted(audit.requests(user).items()) if k[0] in WRITES and n > 9}

    def held(self, timeout=900):
        space = f"drain-{next(_number)}"
        audit = Audit(self.cluster.audit_log).skip()
        self.cluster.namespace(space, labels={"sluice.sh/hold": self.hold})
        begin = int(time.time() + 3 + self.jobs / 50)
        self.cluster.admin.create_many([self._job(i, space, begin=begin) for i in range(self.jobs)])
        late = time.time() > begin
        time.sleep(max(0, begin - time.time()))
        before = self._cpu()
        done, end, rss = self._wait(space, timeout)
        cpu = self._used(before)
        time.sleep(1)
        writes = sum(n for k, n in audit.requests(user=SLUICE).items() if k[0] in WRITES)
        return {
            "who": "sluice", "jobs": self.jobs, "done": done, "seconds": round(end - begin, 1), "late": late,
            "jobs_per_second": round(done / (end - begin), 1), "rss_mb": round(rss / 2**20, 1),
            "writes_per_pod": round(writes / (self.jobs * self.size), 2), "elsewhere": self._finish(space),
            "cpu": cpu, "writes": self._writes(audit, SLUICE), "all_writes": self._writes(audit),
        }  # fmt: skip

    def default(self, timeout=900):
        space = f"drain-{next(_number)}"
        audit = Audit(self.cluster.audit_log).skip()
        self.cluster.namespace(space)
        self.cluster.admin.create_many([self._job(i, space, suspend=True) for i in range(self.jobs)])
        begin, before = time.time(), self._cpu()
        self.cluster.admin.map(
            lambda i: self.cluster.admin.patch("jobs", f"job-{i}", {"spec": {"suspend": False}}, namespace=space),
            range(self.jobs),
        )
        done, end, rss = self._wait(space, timeout)
        cpu = self._used(before)
        self._finish(space)
        return {
            "who": "default", "jobs": self.jobs, "done": done, "seconds": round(end - begin, 1),
            "jobs_per_second": round(done / (end - begin), 1), "rss_mb": round(rss / 2**20, 1), "cpu": cpu,
            "all_writes": self._writes(audit),
        }  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--jobs", type=int, default=2000)
    p.add_argument("--size", type=int, default=4)
    p.add_argument("--nodes", type=int, default=100)
    p.add_argument("--cpu", type=int, default=4, help="of a node; pods ask for one")
    p.add_argument("--run", type=float, default=1, help="seconds a pod runs")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--hold", default="true", help="value of the namespace's label sluice.sh/hold")
    p.add_argument("--timeout", type=float, default=1500, help="seconds for each")
    p.add_argument("--json", type=Path)
    a = p.parse_args()
    rows = []
    with Cluster(f"drain-{os.getpid()}", node_list=[{"name": "node", "count": a.nodes, "cpu": a.cpu}]) as cluster:
        crds(cluster)
        with hooked(cluster, verify=False, status={"interval": "5s"}) as d:  # as delivered, not as for tests
            drain = Drain(cluster, d, a.jobs, a.size, run=a.run, alone=True, hold=a.hold)
            print(f"{'who':8} {'done':>6} {'seconds':>8} {'jobs/s':>7} {'writes/pod':>10} {'MB':>6} {'cpu':>6}")
            for i in range(a.rounds):
                for who in (drain.held, drain.default) if i % 2 == 0 else (drain.default, drain.held):
                    r = who(a.timeout)
                    rows.append(r)
                    print(f"{r['who']:8} {r['done']:6} {r['seconds']:8} {r['jobs_per_second']:7} "
                          f"{r.get('writes_per_pod', '-'):>10} {r['rss_mb']:6} {sum(r['cpu'].values()):6.1f}",
                          r["cpu"], r.get("writes", ""), r["all_writes"], flush=True)  # fmt: skip
    if a.json:
        a.json.write_text(json.dumps(rows, indent=2))
    return 0 if all(r["done"] == r["jobs"] and r.get("writes_per_pod", 0) <= 6 for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

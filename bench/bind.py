"""See bench/bind."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from cluster import Cluster

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
CACHE = Path(os.environ.get("SLUICE_CACHE") or
             Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice")
INFLIGHT = 64


def client_go():
    """The reference program, compiled once."""
    out = CACHE / "bench" / "clientgo"
    out.parent.mkdir(parents=True, exist_ok=True)
    go = subprocess.run([ROOT / "hack/cluster/build", "--go"], check=True, capture_output=True, text=True).stdout.strip()
    subprocess.run([go, "build", "-o", str(out), "."], cwd=ROOT / "bench" / "clientgo",
                   check=True)
    return out


def server_cpu(c):
    """Seconds of CPU the API server and etcd have used so far."""
    ticks = 0
    for name in ("kube-apiserver", "etcd"):
        fields = Path(f"/proc/{c.processes[name].pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "bench"},
            "spec": {"schedulerName": "nobody", "containers": [
                {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}]}}


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 250
    reference = client_go()
    results = {"sluice": [], "client-go": []}
    # Nothing else works on the pods during the run: no scheduler, no simulated kubelet.
    with Cluster(f"bench-{os.getpid()}", node_list=[{"name": "node", "count": 1, "cpu": 64}],
                 without=("scheduler", "kwok", "controller-manager")) as c:
        c.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}})
        c.admin.create({"apiVersion": "v1", "kind": "ServiceAccount",
                        "metadata": {"name": "default", "namespace": "bench"}})
        c.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bench-node"}})
        for r in range(rounds):
            # The order changes from round to round, so that a growing database favours no contender.
            for who in sorted(results, reverse=r % 2 == 1):
                prefix = f"{who[0]}{r}-"
                c.admin.create_many([pod(f"{prefix}{i}") for i in range(count)])
                if who == "sluice":
                    command = [BUILD / "bench" / "bench-bind", c.kubeconfig, "bench", prefix, str(count),
                               str(INFLIGHT), "bench-node"]
                else:
                    command = [reference, "-kubeconfig", c.kubeconfig, "-namespace", "bench", "-prefix", prefix,
                               "-count", str(count), "-workers", str(INFLIGHT), "-node", "bench-node"]
                before = server_cpu(c)
                done = subprocess.run([str(x) for x in command], capture_output=True, text=True, timeout=300)
                if done.returncode:
                    sys.exit(f"bench: {done.stderr or done.stdout}")
                one = json.loads(done.stdout)
                one["server_cpu_us_per_bind"] = (server_cpu(c) - before) * 1e6 / count
                results[who].append(one)
                print(f"round {r + 1} {who:<10} {one['per_second']:8.0f} binds/s {one['cpu_us_per_bind']:8.1f} us CPU",
                      file=sys.stderr, flush=True)
    table = {}
    print(f"{'client':<12}{'binds/s':>10}{'best':>8}{'CPU us/bind':>13}{'server':>8}{'p50 ms':>9}{'p99 ms':>9}{'failed':>8}")
    for who, runs in results.items():
        row = {k: statistics.median(x[k] for x in runs) for k in ("per_second", "cpu_us_per_bind", "server_cpu_us_per_bind", "p50_ms",
                                                                  "p99_ms")}
        row["best_per_second"] = max(x["per_second"] for x in runs)
        row["failed"] = sum(x["failed"] for x in runs)
        table[who] = row
        print(f"{who:<12}{row['per_second']:>10.0f}{row['best_per_second']:>8.0f}{row['cpu_us_per_bind']:>13.1f}"
              f"{row['server_cpu_us_per_bind']:>8.0f}{row['p50_ms']:>9.1f}{row['p99_ms']:>9.1f}{row['failed']:>8.0f}")
    # Rounds of a pair follow each other, so other work on the machine hits both alike.
    pairs = sorted(a["per_second"] / b["per_second"] for a, b in zip(results["sluice"], results["client-go"]))
    ratio = statistics.median(pairs)
    print(f"sluice / client-go: {ratio:.2f} (median of {rounds} pairs of rounds, quartiles {pairs[len(pairs) // 4]:.2f} "
          f"to {pairs[len(pairs) * 3 // 4]:.2f}; {count} pods a round, {INFLIGHT} in flight)")
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench-bind.json").write_text(json.dumps(
        {"rounds": rounds, "pods_per_round": count, "inflight": INFLIGHT, "median": table, "ratio": ratio, "pairs": pairs,
         "runs": results}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

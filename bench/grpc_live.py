"""See bench/grpc-live."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster import Cluster, work
from cluster.ports import free_ports
from e2e.conftest import crds
from e2e.daemon import Sluiced

ROOT = Path(__file__).resolve().parents[1]
BUILD = Path(os.environ.get("SLUICE_BUILD", ROOT / "build"))
NODES, EVERY_S = 1000, 1.0


def gangs(c, d, prefix, seconds):
    """Gangs of four pods, one a second; how long after its creation each was seen to run."""
    took = []
    for i in range(int(seconds / EVERY_S)):
        name, began = f"{prefix}{i}", time.monotonic()
        c.admin.create(work.job(name, 4, namespace="bench", scheduler="sluice", cpu=1, run=3))
        while d.jobs("bench").get(name, {}).get("state") not in ("running", "completed"):
            if time.monotonic() - began > 60:
                sys.exit(f"bench: gang {name} does not start")
            time.sleep(0.1)
        took.append(time.monotonic() - began)
        time.sleep(max(0.0, began + EVERY_S - time.monotonic()))
    return took


class Disk(threading.Thread):
    """How long the disk takes to keep 8 KB, milliseconds, while matches run: each answer waits for such a write of the store. One is due
    every 40 ms, over the same place of a file, as the store's log is written. What became due during a long one waits for
    it, too, as matches do."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.took, self.over = [], threading.Event()
        self.file = open(folder / "disk", "wb", buffering=0)

    def run(self):
        due = ended = time.monotonic()
        while not self.over.wait(max(0.0, due - ended)):
            began = due if ended > due else time.monotonic()
            os.pwrite(self.file.fileno(), bytes(8192), 0)
            os.fdatasync(self.file.fileno())
            ended = time.monotonic()
            self.took.append((ended - began) * 1e3)
            due += 0.04

    def end(self):
        self.over.set()
        self.join()
        self.file.close()
        q = statistics.quantiles(self.took, n=100)
        return {"p50_ms": q[49], "p99_ms": q[98]}


def cycles(before, after):
    n = after["sluice_cycles_total"] - before["sluice_cycles_total"]
    return n, (after["sluice_cycle_seconds_total"] - before["sluice_cycle_seconds_total"]) / n


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    (port,), folder = free_ports(1), Path(tempfile.mkdtemp())
    rows, load = {}, None
    with Cluster(f"bench-{os.getpid()}", node_list=[{"name": "node", "count": NODES, "cpu": 32}]) as c:
        crds(c)
        c.namespace("bench")
        with Sluiced(c, store=str(folder / "s.db"), folder=folder, args=["--port", str(port)], config={"status": {"interval": "5s"}}, verify=False) as d:
            gangs(c, d, "first", 5)  # what is done once is done
            for how in ("gangs alone", "with matches"):
                before = d.metrics()
                if how != "gangs alone":
                    beside = Disk(folder)
                    beside.start()
                    load = subprocess.Popen([BUILD / "bench" / "bench-grpc", "--port", str(port), "--seconds", str(seconds), "--json"],
                                            stdout=subprocess.PIPE, text=True)
                took = gangs(c, d, how[0], seconds)
                n, mean = cycles(before, d.metrics())
                rows[how] = {"cycles": n, "cycle_us": mean * 1e6, "gang_ms": statistics.median(took) * 1e3}
            matches = json.loads(load.communicate(timeout=120)[0])
            keeps = beside.end()
    print(f"{'':<14}{'cycles':>8}{'mean us':>9}{'gang runs after ms':>20}")
    for how, r in rows.items():
        print(f"{how:<14}{r['cycles']:>8.0f}{r['cycle_us']:>9.0f}{r['gang_ms']:>20.0f}")
    print("matches:", ", ".join(f"{k} {v}" for k, v in matches.items()))
    print(f"beside them the store's disk keeps 8 KB in {keeps['p50_ms']:.2f} ms, p99 {keeps['p99_ms']:.2f} ms")
    print("load average:", Path("/proc/loadavg").read_text().split()[0])
    ratio = rows["with matches"]["cycle_us"] / rows["gangs alone"]["cycle_us"]
    print(f"a cycle with matches takes {ratio:.2f} of a quiet one")
    BUILD.mkdir(exist_ok=True)
    (BUILD / "bench-grpc-live.json").write_text(json.dumps({"nodes": NODES, "rows": rows, "matches": matches, "ratio": ratio, "disk": keeps}, indent=2) + "\n")


if __name__ == "__main__":
    main()

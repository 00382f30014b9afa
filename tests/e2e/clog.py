"""The clogging set, the starvation set and pods that leave a fragment, on a real cluster: Sluice beside native gang scheduling.

    hack/cluster/python tests/e2e/clog.py [--seeds 1,2,3,4,5] [--sets clog,starve,sub] [--who sluice,native] [--objective balanced] [--json FILE]

clog:    16 nodes, 60 gangs of 2, 3, 4 or 6 whole-node pods that run 2 to 10 s, all submitted at once.
starve:  sizes 1, 2, 4, 8, 16 (the whole machine), one gang every 0.3 s.
sub:     2 to 20 pods of 3 of a node's 8 cpus (two fit a node), all submitted at once.

All get the same objects: the pods say how long they may run (activeDeadlineSeconds, two seconds more than they
do).  Perfect packing is the work divided by the places on the nodes.  A gang's wait ends when all its pods run.
"""

import argparse
import json
import os
import random
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Cluster, work  # noqa: E402
from cluster.gangs import GangWatch  # noqa: E402
from e2e.daemon import Sluiced  # noqa: E402

NODES = 16
# sizes, seconds between two, cpus of a pod
KEYS = {"clog": ([2, 3, 4, 6], 0.0, 8), "starve": ([1, 2, 4, 8, 16], 0.3, 8), "sub": (list(range(2, 21)), 0.0, 3)}


def gangs_of(kind, seed, count=60):
    """[(name, size, run, submitted after)]"""
    rng = random.Random(seed)
    sizes, every, _ = KEYS[kind]
    return [(f"g{i:02d}", rng.choice(sizes), rng.randint(2, 10), i * every) for i in range(count)]


def pods_of(gang, space, native, cpu):
    name, size, run, _ = gang
    pods = work.gang(name, size, cpu=cpu, run=run, namespace=space, scheduler=None if native else "sluice",
                     activeDeadlineSeconds=run + 2)  # fmt: skip
    for p in pods if native else ():
        p["spec"]["schedulingGroup"] = {"podGroupName": name}
    return pods


def podgroup(gang, space):
    return {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
            "metadata": {"name": gang[0], "namespace": space},
            "spec": {"schedulingPolicy": {"gang": {"minCount": gang[1]}}}}  # fmt: skip


def submit(cluster, gangs, space, native, begun, cpu):
    """In order, each at its time."""
    for g in gangs:
        time.sleep(max(0, begun + g[3] - time.time()))
        if native:
            cluster.admin.create(podgroup(g, space))
        cluster.admin.create_many(pods_of(g, space, native, cpu), workers=4)


class NodeWatch(GangWatch):
    """Sees also from when to when each pod had its node."""

    def __init__(self, *args):
        super().__init__(*args)
        self.stay = {}  # uid -> [node, bound, started, ended, gang]

    def _event(self, kind, pod):
        super()._event(kind, pod)
        node, phase = pod["spec"].get("nodeName"), pod.get("status", {}).get("phase")
        if not node or kind == "DELETED":
            return
        s = self.stay.setdefault(pod["metadata"]["uid"], [node, time.time(), None, None, pod["metadata"]["name"]])
        if phase in ("Running", "Succeeded") and s[2] is None:
            s[2] = time.time()
        if phase == "Succeeded" and s[3] is None:
            s[3] = time.time()

    def idle(self, begun, ended):
        """Idle node-seconds: until a node's first pod, between two pods less than half a second apart, between two
        pods further apart, and after the last pod."""
        first = quick = hole = last = 0.0
        nodes = {}
        for s in self.stay.values():
            nodes.setdefault(s[0], []).append((s[1], s[3] or ended))
        for stays in nodes.values():
            stays.sort()
            first += stays[0][0] - begun
            for a, b in zip(stays, stays[1:], strict=False):
                gap = max(0, b[0] - a[1])
                quick, hole = (quick + gap, hole) if gap < 0.5 else (quick, hole + gap)
            last += ended - max(e for _, e in stays)
        return {"first": first, "handover": quick, "hole": hole, "last": last}


def measure(cluster, kind, seed, who, count=60, timeout=400):
    space = f"{kind}-{who}-{seed}"
    cluster.namespace(space)
    gangs = gangs_of(kind, seed, count)
    cpu = KEYS[kind][2]
    places = NODES * (8 // cpu)
    perfect = sum(size * run for _, size, run, _ in gangs) / places
    with NodeWatch(cluster.admin, space) as watch:
        begun = time.time()
        feeder = threading.Thread(target=submit, args=(cluster, gangs, space, who == "native", begun, cpu))
        feeder.start()
        feeder.join()
        try:
            watch.wait(lambda w: len(w.finished()) == count, timeout)
        except TimeoutError as e:
            print(e)
        seen = {name[1]: g for name, g in watch.snapshot().items()}
        clogged, partial = watch.clogged(), watch.longest_partial()
    done = [g.done_at for g in seen.values() if g.done_at]
    wait = {n: seen[n].running_at - begun - at for n, _, _, at in gangs if n in seen and seen[n].running_at}
    by_size = {}
    for n, size, _, _ in gangs:
        if n in wait:
            by_size.setdefault(size, []).append(wait[n])
    mean = statistics.mean(wait.values())
    held = sum(g.size * (g.done_at - g.whole_at) for g in seen.values() if g.done_at and g.whole_at)
    cluster.admin.delete_all("pods", space, grace=0)
    return {"set": kind, "seed": seed, "who": who, "finished": len(done), "gangs": count, "perfect_s": perfect,
            "makespan_s": max(done) - begun, "ratio": (max(done) - begun) / perfect, "mean_wait_s": mean,
            "wait_by_size_s": {k: statistics.mean(v) for k, v in sorted(by_size.items())},
            "widest_wait_ratio": statistics.mean(by_size[max(by_size)]) / mean, "clogged_pod_s": clogged,
            "longest_part_s": partial, "held_ratio": held / (perfect * places), "idle_node_s": watch.idle(begun, max(done)), "load": os.getloadavg()[0]}  # fmt: skip


def show(r):
    sizes = " ".join(f"{k}:{v:.0f}" for k, v in r["wait_by_size_s"].items())
    idle = " ".join(f"{k} {v:.1f}" for k, v in r["idle_node_s"].items())
    print(f"{r['set']:<8}{r['seed']:>4}  {r['who']:<8}{r['finished']:>4}{r['perfect_s']:>9.1f}{r['makespan_s']:>9.1f}{r['ratio']:>8.3f}"
          f"{r['mean_wait_s']:>8.1f}{r['widest_wait_ratio']:>8.2f}{r['clogged_pod_s']:>9.1f}{r['longest_part_s']:>7.2f}"
          f"{r['held_ratio']:>7.3f}{r['load']:>6.1f}  {sizes}; idle {idle}", flush=True)  # fmt: skip


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seeds", default="1,2,3,4,5")
    a.add_argument("--sets", default="clog,starve,sub")
    a.add_argument("--who", default="sluice,native")
    a.add_argument("--objective", default="balanced", help="of Sluice's queue")
    a.add_argument("--json", help="where the figures go")
    a.add_argument("--log", help="keep sluiced's log here")
    o = a.parse_args()
    rows = []
    print(f"{'set':<8}{'seed':>4}  {'who':<8}{'done':>4}{'perfect':>9}{'makespan':>9}{'ratio':>8}{'wait':>8}{'widest':>8}{'clogged':>9}"
          f"{'part':>7}{'held':>7}{'load':>6}  mean wait by size", flush=True)  # fmt: skip
    with Cluster(f"clog-{os.getpid()}", node_list=[{"name": "node", "count": NODES, "cpu": 8}], gang=True) as c:
        with Sluiced(c, {"queues": [{"name": "default", "objective": o.objective}]}, verify=False) as d:
            for kind in o.sets.split(","):
                for seed in map(int, o.seeds.split(",")):
                    for who in o.who.split(","):
                        rows.append(measure(c, kind, seed, who))
                        show(rows[-1])
            if o.log:
                Path(o.log).write_bytes(d.log.read_bytes())
    for kind in o.sets.split(","):
        for who in o.who.split(","):
            mine = [r for r in rows if r["set"] == kind and r["who"] == who]
            print(f"{kind} {who}: makespan / perfect mean {statistics.mean(r['ratio'] for r in mine):.3f}, "
                  f"worst {max(r['ratio'] for r in mine):.3f}; widest / mean wait {statistics.mean(r['widest_wait_ratio'] for r in mine):.2f}, "
                  f"worst {max(r['widest_wait_ratio'] for r in mine):.2f}")  # fmt: skip
    if o.json:
        Path(o.json).write_text(json.dumps({"options": vars(o), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

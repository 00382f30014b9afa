"""Churn: random submissions, deletions, failures, node changes, deaths of the API server and of the daemon,
with a check from outside all the while.  And in turn, every few seconds, what a daemon must bear as well: its wall
clock is set, a node is made again under its name while its pods stay, an object has a time that no calendar has,
connections come and say nothing, and a user makes the largest objects there may be and forges what only we write.

    hack/cluster/python -m e2e.soak --seconds 1800 --seed 3        (make soak)
"""

import argparse
import json
import http.client
import os
import random
import socket
import struct
import sys
import time

from cluster import ApiError, work
from cluster.audit import Audit
from cluster.cluster import Cluster
from cluster.gangs import GangWatch

from .conftest import crds, until
from .daemon import Sluiced, program

NODES = [{"name": "node", "count": 10, "cpu": 4, "memory": "32Gi", "per": {"rack": 5}}]
GROUP = "scheduling.x-k8s.io/pod-group"
#: While its members are bound, a gang may hold some of its nodes and not all, but no longer than this. The time starts
#: again whenever a killed daemon or the API server returns.
PARTIAL_S = 20
#: After so long a process has seen everything once.
WARM_S = 8


FAULTS = ("clock_steps", "recreated", "undecodable", "silent_connections", "hostile_objects")
#: Of the user who means no good.
HOSTILE = "mallory"


class StepClock:
    """The wall clock of a daemon alone, by a library in front of it (stepclock.c).  `there` is false for a build with
    sanitizers, whose own library must come first: that daemon keeps the time."""

    def __init__(self, sluiced):
        library = program("tests/stepclock.so")
        self.there = library.exists()
        if self.there:
            self.file = sluiced.folder / "clock"
            self.set(0)
            sluiced.env = {**os.environ, "LD_PRELOAD": str(library), "SLUICE_STEP_CLOCK": str(self.file)}

    def set(self, seconds):
        with open(self.file, "r+b" if self.file.exists() else "wb") as f:  # the daemon has it mapped
            f.write(struct.pack("=q", seconds * 1000000))


class Soak:
    def __init__(self, cluster, sluiced, space, seed=1, api_deaths_s=150, kills_s=26, faults_s=6, say=None):
        self.cluster, self.sluiced, self.space = cluster, sluiced, space
        self.admin = cluster.admin
        self.rng = random.Random(seed)
        self.api_deaths_s, self.kills_s = api_deaths_s, kills_s
        self.say = say or (lambda text: None)
        self.number = 0
        self.labels = {n["metadata"]["name"]: n["metadata"]["labels"] for n in self.admin.list("nodes")}
        self.nodes = sorted(self.labels)
        self.gangs = {}  # name -> "pods" or "job", while the user wants it
        self.excused = set()  # gangs that lost a member by what was done to them, not by us
        self.uneven = {}  # node -> until when its amounts may not add up (it was made smaller)
        self.down = {}  # node -> when it comes back
        self.count = dict.fromkeys(
            ("submitted", "pods", "jobs", "deleted", "evicted", "others", "kills", "api_deaths", "cordons",
             "resized", "removed", "notready", "relabelled", "checks", *FAULTS), 0)  # fmt: skip
        self.faults_s = faults_s
        self.clock = StepClock(sluiced)
        self.later = []  # (when, what to do then)
        self.silent = []
        self.memory = []  # (number of the process, its age, resident bytes)
        self.began = time.monotonic()
        self.started = self.began
        self.away = []  # from when to when, in seconds since 1970, the daemon or the API server was gone
        self.bad = []

    # -- what users do -------------------------------------------------------------------------

    def submit(self):
        self.number += 1
        name, size = f"g{self.number}", self.rng.choice([1, 1, 2, 2, 3, 4, 6, 10])
        common = {
            "cpu": self.rng.choice([1, 2, 4]), "namespace": self.space, "run": self.rng.choice([1, 2, 3, 6]),
            "scheduler": self.rng.choice(["sluice", "fluence", "fluxnetes"]),
        }  # fmt: skip
        if self.rng.random() < 0.15:
            common["annotations"] = {"sluice.sh/topology": self.rng.choice(["required:rack", "preferred:rack"])}
            size = min(size, 4)
        self.count["submitted"] += 1
        self.count["pods"] += size
        if self.rng.random() < 0.5:
            self.gangs[name] = "pods"
            try:
                for p in work.gang(name, size, **common):
                    self.admin.create(p)
            except (ApiError, OSError):
                self.excused.add(name)  # not all of it was submitted
                raise
            return
        self.count["jobs"] += 1
        notes = dict(common.pop("annotations", {}))
        if self.rng.random() < 0.1:  # the kubelet refuses its members, for ever
            notes["sluice.test/refuse"] = "OutOfcpu"
        waves = size * self.rng.choice([1, 1, 1, 2])
        self.gangs[name] = "refused" if "sluice.test/refuse" in notes else "job"
        self.admin.create(
            work.job(name, pods=size, completions=waves, backoff=1 if self.gangs[name] == "refused" else 50,
                     labels={GROUP: name, "fluence.group-size": str(size)}, annotations=notes, **common)
        )  # fmt: skip

    def delete(self):
        if not self.gangs:
            return
        name = self.rng.choice(sorted(self.gangs))
        kind = self.gangs.pop(name)
        self.excused.add(name)
        self.count["deleted"] += 1
        if kind != "pods":
            self.admin.delete("jobs", name, self.space, propagation="Background", missing_ok=True)
        self.admin.delete_all("pods", self.space, labels=f"{GROUP}={name}", grace=0)

    def evict(self):
        """A member of a Job is taken away; its controller makes another one."""
        found = [p for p in self.admin.list("pods", self.space, labels="job-name") if p["spec"].get("nodeName")]
        if found:
            p = self.rng.choice(found)
            self.excused.add(p["metadata"]["labels"].get(GROUP))
            self.admin.delete("pods", p["metadata"]["name"], self.space, grace=0, missing_ok=True)
            self.count["evicted"] += 1

    def other(self):
        """Work of the default scheduler beside it."""
        self.number += 1
        self.count["others"] += 1
        self.admin.create(work.pod(f"other-{self.number}", cpu=1, namespace=self.space, run=2))

    # -- what happens to nodes -----------------------------------------------------------------

    def up(self):
        return [n for n in self.nodes if n not in self.down]

    def cordon(self):
        self.count["cordons"] += 1
        self.cluster.cordon(self.rng.choice(self.up()), self.rng.random() < 0.35)

    def resize(self):
        node = self.rng.choice(self.up())
        self.uneven[node] = time.monotonic() + 30
        self.cluster.resize_node(node, cpu=self.rng.choice([4, 4, 6, 8]))
        self.count["resized"] += 1

    def relabel(self):
        self.cluster.label_node(self.rng.choice(self.up()), {"soak": str(self.rng.randrange(5)), "disk": None})
        self.count["relabelled"] += 1

    def not_ready(self):
        if len(self.down) < 3:
            node = self.rng.choice(self.up())
            self.cluster.set_ready(node, False)
            self.down[node] = (time.monotonic() + self.rng.uniform(1, 8), "ready")
            self.count["notready"] += 1

    def remove(self):
        """The Node object goes, with whatever ran there, and comes back under its name later."""
        if len(self.down) >= 3:
            return
        node = self.rng.choice(self.up())
        self.down[node] = (time.monotonic() + self.rng.uniform(2, 8), "add")
        self.cluster.remove_node(node)
        self.count["removed"] += 1

    def recover(self, everything=False):
        for node, (when, how) in list(self.down.items()):
            if not everything and time.monotonic() < when:
                continue
            if how == "ready":
                self.cluster.set_ready(node, True)
            else:
                if how == "add":
                    self.sweep(node)
                try:
                    self.cluster.add_nodes({"name": node, "cpu": 4, "memory": "32Gi", "labels": self.labels[node]})
                except ApiError as e:
                    if e.status != 409:
                        raise
            del self.down[node]

    def sweep(self, node):
        """Kubernetes collects the pods of a vanished node at its leisure; here it is done now."""
        for p in self.admin.list("pods", fields=f"spec.nodeName={node}"):
            self.excused.add(p["metadata"].get("labels", {}).get(GROUP))
            self.admin.delete("pods", p["metadata"]["name"], p["metadata"]["namespace"], grace=0, missing_ok=True)

    # -- what is not to be expected, one kind after the other ------------------------------------

    def after(self, seconds, call):
        self.later.append((time.monotonic() + seconds, call))

    def catch_up(self, everything=False):
        now = time.monotonic()
        due = [x for x in self.later if everything or x[0] <= now]
        self.later = [x for x in self.later if x not in due]
        for _, call in due:
            call()

    def step_clock(self):
        """Ten minutes back, or a day ahead; three seconds later it is set right."""
        if self.clock.there:
            self.clock.set(self.rng.choice([-600, 86400]))
            self.after(3, lambda: self.clock.set(0))
            self.count["clock_steps"] += 1

    def recreate(self):
        """The Node object is deleted and made again at once: what runs there stays."""
        node = self.rng.choice(self.up())
        self.uneven[node] = time.monotonic() + 30
        for p in self.admin.list("pods", fields=f"spec.nodeName={node}"):
            self.excused.add(p["metadata"].get("labels", {}).get(GROUP))
        self.down[node] = (time.monotonic(), "again")
        self.cluster.remove_node(node)
        self.recover()
        self.count["recreated"] += 1

    def make_undecodable(self):
        """A pod that began in the year 0."""
        self.number += 1
        name = f"other-odd-{self.number}"
        self.admin.create(work.pod(name, cpu=1, namespace=self.space, run=2, nodeSelector={"no-such": "label"}))
        self.admin.patch("pods", name, {"status": {"startTime": "0000-01-01T00:00:00Z"}}, self.space, subresource="status")
        self.after(10, lambda: self.admin.delete("pods", name, self.space, grace=0, missing_ok=True))
        self.count["undecodable"] += 1

    def be_silent(self):
        """Two hundred connections that say nothing; who asks for health is answered all the same."""
        made = []
        for _ in range(200):
            try:
                made.append(socket.create_connection(("127.0.0.1", self.sluiced.port("https")), timeout=5))
            except OSError:
                break
        probe = http.client.HTTPConnection("127.0.0.1", self.sluiced.port("health"), timeout=60)
        probe.request("GET", "/healthz")
        if probe.getresponse().status != 200:
            self.bad.append(f"not healthy among {len(made)} silent connections")
        self.after(5, lambda: [s.close() for s in made])
        self.count["silent_connections"] += len(made)

    def be_hostile(self):
        """What is large stays (make_large); here something comes and goes: a Job beyond all bounds, and a pod that
        claims a node as if we had released it there."""
        self.number += 1
        job = self.large_job(f"large-{self.number}", self.rng.choice([2_000_000, 99_999]))
        node = self.rng.choice(self.nodes)
        forged = work.pod(f"forged-{self.number}", cpu=3, namespace=HOSTILE, run=60, annotations={"sluice.sh/node": node},
                          nodeSelector={"no-such": "label", "kubernetes.io/hostname": node})  # fmt: skip
        self.admin.create(job)
        self.admin.create(forged)
        self.after(8, lambda: self.admin.delete("jobs", job["metadata"]["name"], HOSTILE, propagation="Background", missing_ok=True))
        self.after(8, lambda: self.admin.delete("pods", forged["metadata"]["name"], HOSTILE, grace=0, missing_ok=True))
        self.count["hostile_objects"] += 2

    def large_job(self, name, pods):
        job = work.job(name, pods=pods, namespace=HOSTILE, scheduler="sluice")
        job["spec"]["suspend"] = True
        return job

    def make_large(self):
        """The largest FluxJob there may be, for as long as the soak lasts."""
        self.cluster.namespace(HOSTILE)
        self.admin.patch("namespaces", HOSTILE, {"metadata": {"labels": {"sluice.sh/hold": "true"}}}, None)
        spec = ("version: 1\nresources: [{type: slot, count: 10000, label: s, with: [{type: core, count: 1}]}]\n"
                "tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\nattributes: {system: {duration: 60}}\n")  # fmt: skip
        self.admin.create({"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob",
                           "metadata": {"name": "vast", "namespace": HOSTILE}, "spec": {"jobspec": spec}})  # fmt: skip

    # -- what happens to programs --------------------------------------------------------------

    def kill(self):
        """A daemon that starts with a wrong clock is another matter: it is set right before."""
        if self.clock.there:
            self.clock.set(0)
        self.remember()
        gone = time.time()
        self.sluiced.kill()
        self.count["kills"] += 1
        time.sleep(self.rng.choice([0, 0, 0.2, 2]))
        self.sluiced.start(60)
        self.started = time.monotonic()
        self.away.append((gone, time.time()))

    def api_death(self):
        gone = time.time()
        self.cluster.kill("apiserver")
        self.count["api_deaths"] += 1
        self.cluster.start("apiserver")
        self.cluster.restart("kwok")  # else pods of that moment may stand still for minutes
        until(self.watched)
        self.away.append((gone, time.time()))

    def watched(self):
        """A server that calls itself ready may refuse watches while it reads its store; until then no client sees a
        change."""
        try:
            next(self.cluster.admin.watch("pods", timeout=5), None)
        except (ApiError, OSError):
            return False
        return True

    def remember(self):
        try:
            self.memory.append((self.count["kills"], time.monotonic() - self.started, self.sluiced.rss()))
        except (OSError, KeyError):
            pass

    # -- checks --------------------------------------------------------------------------------

    def check(self):
        """Our own pods alone never need more of a node than there is.  (Two schedulers that see the same room
        at the same moment may both take it; then the kubelet refuses one.)"""
        now = time.monotonic()
        there = {n["metadata"]["name"]: n["status"]["allocatable"] for n in self.admin.list("nodes")}
        used, who, theirs = {}, {}, set()
        for p in self.admin.list("pods"):
            node = p["spec"].get("nodeName")
            if node and p["status"].get("phase") not in ("Succeeded", "Failed"):
                who.setdefault(node, []).append(p["metadata"]["name"])
                if p["metadata"]["name"].startswith("other"):
                    theirs.add(node)
                for what, amount in work.requests(p).items():
                    used[node, what] = used.get((node, what), 0) + amount
        for (node, what), n in used.items():
            has = work.quantity(there.get(node, {}).get(what, "0"))
            if n > has and node not in theirs and self.uneven.get(node, 0) < now and node in there and node not in self.down:
                self.bad.append(f"{node} has {has} {what}, {n} are used by {who[node]}")
        self.count["checks"] += 1

    def calm_seconds(self, interval):
        """The longest time within it in which everything was at work."""
        at, end, longest = interval.start, interval.start + interval.seconds(), 0.0
        for gone, back in self.away:
            longest = max(longest, min(gone, end) - at)
            at = max(at, back)
        return max(longest, end - at)

    def partials(self, watch, longer=PARTIAL_S):
        """Gangs that were partly bound for too long before they were whole, unless something else than Sluice took
        them apart."""
        found = {}
        for name, gang in watch.snapshot().items():
            if name[1] in self.excused or self.gangs.get(name[1]) == "refused":
                continue
            for i in gang.partly_bound:
                if (gang.whole_at is None or i.start < gang.whole_at) and self.calm_seconds(i) > longer:
                    found[name[1]] = round(self.calm_seconds(i), 1)
        return found

    def longest(self, watch):
        return max(self.partials(watch, 0).values(), default=0)

    # -- the whole -----------------------------------------------------------------------------

    def run(self, seconds):
        """Churn for so long, then let everything end; returns the figures.  self.bad lists what went wrong."""
        acts = [(self.submit, 50), (self.delete, 8), (self.evict, 4), (self.other, 8), (self.cordon, 8), (self.resize, 4),
                (self.relabel, 4), (self.not_ready, 3), (self.remove, 2)]  # fmt: skip
        end = time.monotonic() + seconds
        next_kill = time.monotonic() + self.kills_s / 2
        next_death = time.monotonic() + min(self.api_deaths_s, seconds / 2)
        next_word = time.monotonic() + 60
        next_look = 0
        faults = [self.step_clock, self.recreate, self.make_undecodable, self.be_silent, self.be_hostile]
        next_fault = time.monotonic() + self.faults_s
        self.make_large()
        with GangWatch(self.admin, self.space) as watch:
            while time.monotonic() < end and not self.bad:
                now = time.monotonic()
                try:
                    self.recover()
                    live = sum(k != "refused" for k in self.gangs.values())
                    act = self.rng.choices(*zip(*acts, strict=True))[0]
                    if act != self.submit or live < 40:
                        act()
                    self.catch_up()
                    if now >= next_fault:
                        next_fault = now + self.faults_s
                        faults.append(faults.pop(0))
                        faults[-1]()
                    if now >= next_kill:
                        next_kill = now + self.rng.uniform(0.6, 1.4) * self.kills_s
                        self.kill()
                    if now >= next_death:
                        next_death = now + self.api_deaths_s
                        self.api_death()
                    self.settle_gangs(watch)
                    self.check()
                except (ApiError, OSError) as e:
                    if isinstance(e, ApiError) and e.status < 500 and e.status not in (404, 409, 429):
                        raise
                if self.sluiced.process.poll() is not None:
                    self.bad.append("sluiced ended by itself:\n" + self.sluiced.tail(40))
                if self.partials(watch):
                    self.bad.append(f"in part for more than {PARTIAL_S} s: {self.partials(watch)}")
                if now >= next_look:
                    next_look = now + 2
                    self.remember()
                if now >= next_word:
                    next_word += 60
                    self.say(f"{now - self.began:.0f} s: {self.count}, {len(self.gangs)} wanted, "
                             f"longest in part {self.longest(watch):.1f} s")  # fmt: skip
                time.sleep(0.1)
            self.remember()
            self.finish(watch)
            return self.figures(watch)

    def settle_gangs(self, watch):
        """Forget what is over."""
        done = {name[1] for name, g in watch.snapshot().items() if g.done_at}
        for name in [n for n, kind in self.gangs.items() if kind == "pods" and n in done]:
            del self.gangs[name]
        if self.rng.random() > 0.05:
            return
        for job in self.admin.list("jobs", self.space):
            name = job["metadata"]["name"]
            if any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in job["status"].get("conditions", [])):
                if name in self.gangs and self.gangs[name] == "job" and any(c["type"] == "Failed" for c in job["status"]["conditions"]):
                    self.bad.append(f"Job {name} failed: {job['status']}")
                self.gangs.pop(name, None)
                self.admin.delete("jobs", name, self.space, propagation="Background", missing_ok=True)

    def left(self, watch):
        """What is wanted and has not ended."""
        seen = watch.snapshot()
        jobs = {j["metadata"]["name"]: j for j in self.admin.list("jobs", self.space)}
        found = []
        for name, kind in self.gangs.items():
            if kind == "pods":
                gang = seen.get((self.space, name))
                if name not in self.excused and not (gang and gang.done_at):
                    found.append(name)
            elif not any(c["type"] in ("Complete", "Failed") and c["status"] == "True"
                         for c in jobs.get(name, {"status": {}})["status"].get("conditions", [])):  # fmt: skip
                found.append(name)
        return found

    def calm(self):
        self.recover(everything=True)
        for node in self.nodes:
            self.cluster.cordon(node, False)
            self.cluster.resize_node(node, cpu=4)

    def finish(self, watch):
        until(lambda: self._tried(self.calm), 60, "the nodes come back")
        while self.later:
            self._tried(lambda: self.catch_up(everything=True))
        self.admin.delete("namespaces", HOSTILE, None)
        try:
            until(lambda: not self.left(watch), 240, "everything that is wanted ends")
        except TimeoutError:
            jobs = self.sluiced.jobs(self.space)
            self.bad.append(f"lost: {self.left(watch)[:10]}; sluiced says {json.dumps(jobs)[:3000]}")
        for obj in self.admin.list("jobs", self.space):
            self.admin.delete("jobs", obj["metadata"]["name"], self.space, propagation="Background", missing_ok=True)
        until(lambda: self._tried(lambda: self.admin.delete_all("pods", self.space, grace=0)) and not self.admin.list("pods", self.space), 60)
        for what, test in (("a share is leaked", self.all_free), ("a job is left", lambda: not self.sluiced.jobs(self.space))):
            try:
                until(test, 45)
            except TimeoutError:
                self.bad.append(f"{what}: {json.dumps(self.sluiced.get('/v1/nodes'))[:1500]} {self.sluiced.jobs(self.space)}")
        twice = Audit(self.cluster.audit_log).bound_twice(self.space)
        if twice:
            self.bad.append(f"bound twice: {twice}")
        for line in self.sluiced.log.read_text().splitlines():
            if "plan and cluster disagree" in line or "mirror and cluster disagree" in line or "cycle failed" in line:
                self.bad.append(line)
        if watch.half_started() and (rest := [g for g in watch.half_started() if g[1] not in self.excused and g[1] in self.gangs]):
            self.bad.append(f"half started at the end: {rest}")

    @staticmethod
    def _tried(call):
        try:
            call()
        except (ApiError, OSError):
            return False
        return True

    def all_free(self):
        return all(r["free"] == r["total"] for n in self.sluiced.nodes().values() for r in n["resources"].values())

    def figures(self, watch):
        third = len(self.memory) // 3 or 1
        first, last = self.memory[:third], self.memory[-third:]
        return {
            **self.count,
            "seconds": round(time.monotonic() - self.began),
            "longest_in_part_s": round(self.longest(watch), 2),
            "memory_first_third_mib": round(max(m for *_, m in first) / 2**20, 1) if first else None,
            "memory_grows_in_a_life_mib": round(self.memory_grows() / 2**20, 2),
            "memory_last_third_mib": round(max(m for *_, m in last) / 2**20, 1) if last else None,
            "wrong": self.bad,
        }

    def memory_grows(self):
        """Bytes by which a process has grown in its life, once it was WARM_S old: the lower quartile of all that lived so
        long.  (A process lives for half a minute only; one that leaks does so in each of its lives.  A hostile Job or a
        crowd of connections may come late in a life, and the memory for it is kept: that is no leak.)"""
        lives = {}
        for life, age, size in self.memory:
            if age >= WARM_S:
                lives.setdefault(life, []).append(size)
        grown = sorted(sizes[-1] - sizes[0] for sizes in lives.values() if len(sizes) > 2)
        return grown[len(grown) // 4] if grown else 0

    def memory_flat(self):
        """The largest size of the last third is not above that of the first by more than a quarter and 4 MiB, and
        within its life a process grows by 1 MiB at most."""
        third = len(self.memory) // 3 or 1
        late, early = (max(m for *_, m in part) for part in (self.memory[-third:], self.memory[:third]))
        return late <= 1.25 * early + (4 << 20) and self.memory_grows() <= 1 << 20


SETTINGS = {"status": {"interval": "1s", "audit": "2s"}, "jobs": {"holdVacant": "5s"}}


def main():
    p = argparse.ArgumentParser(description="Half an hour of churn.")
    p.add_argument("--seconds", type=int, default=1800)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--api-deaths", type=int, default=150, help="seconds between two deaths of the API server")
    p.add_argument("--keep-log", help="copy the daemon's log there at the end")
    o = p.parse_args()
    print(f"seed {o.seed}", flush=True)
    with Cluster(f"soak-{os.getpid()}", node_list=NODES) as cluster:
        crds(cluster)
        cluster.namespace("soak")
        folder = cluster.folder / "soak"
        folder.mkdir()
        d = Sluiced(cluster, SETTINGS, store=str(folder / "sluice.db"), folder=folder)
        soak = Soak(cluster, d, "soak", o.seed, o.api_deaths, say=lambda t: print(t, flush=True))
        with d:
            try:
                figures = soak.run(o.seconds)
            finally:
                if o.keep_log:
                    with open(o.keep_log, "wb") as f:
                        f.write(d.log.read_bytes())
        print(json.dumps(figures, indent=1))
        if not soak.memory_flat():
            soak.bad.append("the memory grows")
    sys.exit(1 if soak.bad else 0)


if __name__ == "__main__":
    main()

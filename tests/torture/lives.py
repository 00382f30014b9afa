"""One daemon after the other, each told where to die."""

import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from cluster import ApiError, Audit, Cluster, work
from cluster.ports import free_ports
from e2e.conftest import crds, until
from e2e.daemon import ROOT, Sluiced
from store.postgres import Postgres

from .script import CPU, NODES, Script
from .witness import Witness

STORES = ["sqlite", "postgresql"]
SPACE = "torture"
#: A life that does not come to its point is killed from outside, so long after it has looked around.
LIFE_S = 1.5
#: No gang may be in part longer than this, and for more lives: most of them die before they have placed anything.
PART_S, PART_LIVES = 45.0, 40
#: In the last life something is placed or ends at least so often, until everything has.
STUCK_S = 90.0
#: Jobs, and what was written about their plans since the last look.
LOOK = """
SELECT 'job', key, id, first_seen_us, 0, 0 FROM jobs UNION ALL
SELECT 'plan', cause, job, at_us, planned_s, seq FROM plans WHERE seq > {seq} ORDER BY 6"""


class Books:
    """What the store says, read between two lives."""

    def __init__(self, kind, folder):
        self.kind = kind
        self.pg = Postgres().start() if kind == "postgresql" else None
        self.file = Path(folder) / "sluice.db"
        self.url = self.pg.url if self.pg else str(self.file)
        self.seq = 0  # of the last plan seen

    def close(self):
        if self.pg and os.environ.get("TORTURE_KEEP"):
            with open(self.file.with_suffix(".sql"), "w") as out:
                subprocess.run([self.pg.bin / "pg_dump", "-d", self.url], stdout=out, check=False)
        if self.pg:
            self.pg.stop()

    def rows(self, query):
        if self.pg:
            return [[int(x) if x.lstrip("-").isdigit() else x for x in row] for row in self.pg.rows(query)]
        if not self.file.exists():
            return []
        with sqlite3.connect(self.file, timeout=10) as db:
            return [list(row) for row in db.execute(query)]

    def look(self):
        """({key: (id, first seen)}, {id: {written at: [planned, causes]}}) or None while it cannot be read.  Of what
        was decided in one moment the last word counts."""
        try:
            rows = self.rows(LOOK.format(seq=self.seq))
        except (RuntimeError, sqlite3.OperationalError):
            return None  # being made, or restarted
        jobs, plans = {}, {}
        for what, text, job, at, planned, seq in rows:
            if what == "job":
                jobs[text] = job, at
                continue
            self.seq = seq
            row = plans.setdefault(job, {}).setdefault(at, [0, set()])
            row[0] = planned
            row[1].add(text)
        return jobs, plans


@dataclass
class Report:
    store: str
    kills: Counter = field(default_factory=Counter)  # by point
    passed: Counter = field(default_factory=Counter)
    outside: int = 0
    early: list = field(default_factory=list)  # lives that ended by themselves
    restarts: Counter = field(default_factory=Counter)  # of others
    wrong: list = field(default_factory=list)
    figures: dict = field(default_factory=dict)

    def as_dict(self):
        return {**vars(self), "total": sum(self.kills.values())}

    def text(self):
        lines = [f"{self.store}: {sum(self.kills.values())} kill points at {len(self.kills)} places, {self.outside} kills from outside"]
        for name in sorted(self.passed):
            lines.append(f"  {self.kills[name]:5}  of {self.passed[name]:7} passed  {name}")
        lines.append("  " + ", ".join(f"{k} {v}" for k, v in {**self.restarts, **self.figures}.items()))
        lines += [f"  WRONG: {w}" for w in self.wrong]
        return "\n".join(lines)


class Chooser:
    """Where the next life is to die: the place with the fewest kills, or simply the n-th point."""

    def __init__(self, rng):
        self.rng = rng
        self.most = {}
        self.places = Counter()  # kills; a place that was not reached counts a little, too

    def next(self, *about):
        places = [p for p in self.places if not about or any(a in p for a in about)]
        if not places or (not about and self.rng.random() < 0.25):
            return str(int(2 ** self.rng.uniform(0, 9)))
        fewest = min(self.places[p] for p in places)
        place = self.rng.choice([p for p in places if self.places[p] <= fewest + 0.5])
        most = max(1, self.most.get(place, 1))  # so often in one life
        return f"{place}#{min(most, self.rng.choice([1, 1, 1, 2, 3, 5, 8])) if not about else 1}"

    def lived(self, at, kills, passed):
        for name, times in passed.items():
            self.places.setdefault(name, 0)
            self.most[name] = max(times, self.most.get(name, 0))
        for name in kills:
            self.places[name] += 1
        if "#" in at and not kills:
            self.places[at.rsplit("#", 1)[0]] += 0.5


class Torture:
    def __init__(self, cluster, kind, seed, folder, say):
        self.cluster, self.say = cluster, say
        self.folder = Path(folder)
        self.rng = random.Random(seed)
        self.books = Books(kind, folder)
        self.report = Report(kind)
        self.chooser = Chooser(self.rng)
        self.last = {}  # keys of the jobs after the life before
        self.seen = {}  # key -> first seen
        self.promises = {}  # key -> (planned start, written at)
        self.missing = {}  # groups the store has no more, and since when
        self.outage = 0.0  # until when another server is away
        common = {
            "jobs": {"onMemberFailure": "restart" if kind == "sqlite" else "replace", "enforceDeadlines": True},
            "place": {"retryFor": "1s"},
            "status": {"interval": "1s"},
            "store": {"keepMegabytes": 1},  # kills happen while the event log begins again
        }
        (self.hook,) = free_ports(1)
        webhook = {"webhook": {"enabled": True, "listen": f"127.0.0.1:{self.hook}", "names": ["localhost"]}}
        elect = {"leader": {"elect": True, "namespace": "sluice-system", "lease": "3s"}}
        self.daemons = {
            name: Sluiced(cluster, {**common, **more}, store=self.books.url, folder=self._folder(name))
            for name, more in (("plain", {}), ("webhook", webhook), ("elect", elect))
        }
        self.daemon = self.daemons["plain"]

    def _folder(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def prepare(self):
        crds(self.cluster)
        for obj in yaml.safe_load_all((ROOT / "deploy" / "webhook.yaml").read_text()):
            if obj["kind"] == "MutatingWebhookConfiguration":
                url = f"https://localhost:{self.hook}/mutate-v1-sluice"
                for hook in obj["webhooks"]:
                    hook["clientConfig"] = {"url": url}
                self.cluster.admin.apply(obj)

    def command(self):
        build = Path(os.environ.get("SLUICE_CRASH_BUILD", ROOT / "build-crash"))
        return [
            build / "sluiced", "--config", self.daemon.config, "--kubeconfig", self.cluster.sluice_kubeconfig,
            "--store", self.books.url, "--verify",
        ]  # fmt: skip

    def spawn(self, at, last=None):
        log = self.folder / "points"
        log.unlink(missing_ok=True)
        env = {**os.environ, "SLUICE_CRASH_LOG": str(log), **({"SLUICE_CRASH_AT": at} if at else {}),
               **({"SLUICE_CRASH_LAST": str(last)} if last else {})}  # fmt: skip
        env.pop("DATABASE_URL", None)
        with open(self.daemon.log, "ab") as out:
            out.write(f"---- life, dies at {at or 'no point'}\n".encode())
            out.flush()
            self.offset = out.tell()
            return subprocess.Popen([*map(str, self.command())], env=env, stdout=out, stderr=out)

    def points(self):
        """(killed at, passed) of the life that is over."""
        log = self.folder / "points"
        killed, passed = [], Counter()
        for line in log.read_text().splitlines() if log.exists() else []:
            name = line.split(" ", 1)[1]
            if name.endswith(" KILLED"):
                name = name.removesuffix(" KILLED")
                killed.append(name)
            passed[name] += 1
        return killed, passed

    def life(self, n=0):
        at, last, limit = self.chooser.next(), int(2 ** self.rng.uniform(5.5, 8.5)), LIFE_S
        if n % 14 == 5:  # the webhook makes its certificates again
            self.daemon = self.daemons["webhook"]
            self._try(lambda: self.cluster.admin.delete("secrets", "sluice-webhook", "sluice-system", missing_ok=True))
            at = self.chooser.next("secrets", "webhook")
        elif n % 14 == 12 and self.books.pg:  # one of several, as far as it knows
            self.daemon = self.daemons["elect"]
            at, last, limit = self.chooser.next("leases"), None, 4.0
            if self.rng.random() < 0.7:  # else it waits for the end of the one before
                self._try(lambda: self.cluster.admin.delete("leases", "sluice", "sluice-system", missing_ok=True))
        self.witness.lives += 1
        process = self.spawn(at, last)
        outside = self.rng.random() < 0.04
        if not self.wait(process, self.rng.uniform(0.0, 1.0) if outside else limit):
            process.kill()
            process.wait()
            self.report.outside += 1
        killed, passed = self.points()
        self.chooser.lived(at, killed, passed)
        self.report.kills.update(killed)
        self.report.passed.update(passed)
        deposed = self.daemon is self.daemons["elect"] and "lost leadership: the lease" in self.daemon.tail(3)
        if process.returncode != -9 and time.time() > self.outage and not deposed:
            self.report.early.append(f"status {process.returncode}: {self.daemon.tail(3)}")
        self.daemon = self.daemons["plain"]
        self.look()

    def wait(self, process, limit):
        """Whether it has ended by itself, within so many seconds after its first cycle (or half a minute: the
        machine may be slow, the API server away)."""
        end, begun = time.monotonic() + (3 if time.time() < self.outage else 30), None
        while process.poll() is None:
            now = time.monotonic()
            if begun is None and b" first cycle " in self.since():
                begun = now
            if now > end or (begun and now > begun + limit):
                return False
            time.sleep(0.02)
        return True

    def since(self):
        """What this life has logged."""
        with open(self.daemon.log, "rb") as log:
            log.seek(self.offset)
            return log.read()

    @staticmethod
    def _try(step):
        try:
            step()
        except (ApiError, OSError):
            pass  # the API server restarts

    # -- between lives -------------------------------------------------------------------------

    def look(self):
        now = time.time()
        seen = self.books.look()
        if seen is None:
            return
        jobs, plans = seen
        self.compare(jobs, plans, now)
        # It may have been placed and ended, and the witness hears of it a moment later.
        for key, since in list(self.missing.items()):
            gang = self.witness.gang(key)
            if key in jobs or not self.matters(gang):
                del self.missing[key]
            elif now - since[0] > 20 and self.witness.lives - since[1] > PART_LIVES:
                self.wrong(f"{key}: the store forgot {gang}")
                del self.missing[key]
        for sentence in self.witness.wrong:
            self.wrong(sentence)
        self.witness.wrong.clear()

    def wrong(self, sentence):
        self.report.wrong.append(sentence)
        self.say(f"WRONG: {sentence}")

    def matters(self, gang):
        """Whether its place in the queue does: not when all of it had one, nor when it is over.  (A Job may fail
        before all of it had one: a member was bound, the gang was taken back, and that was one failure too many.)"""
        return gang is not None and gang.deleted is None and gang.whole is None and not self.witness.done(gang)

    def compare(self, jobs, plans, now):
        """Order and promises of the lives before are those of this one."""
        for key in self.last:
            if key not in jobs and self.matters(self.witness.gang(key)):
                self.missing.setdefault(key, (now, self.witness.lives))
        for key, (job, seen) in jobs.items():
            if not self.matters(self.witness.gang(key)):
                continue
            first = self.seen.setdefault(key, seen)
            if first != seen:
                self.wrong(f"{key}: was first seen {first}, now {seen}")
                self.seen[key] = seen
            for at, (planned, causes) in plans.get(job, {}).items():
                self.promised(key, planned, at, causes)
        self.last = dict(jobs)

    def promised(self, key, planned, at, causes):
        """A promise stands until Sluice replaces it, and moves later only for a reason."""
        was, was_at = self.promises.get(key, (0, 0))
        late = was * 1000000 <= at  # its second came while no daemon ran
        if not planned or (was < planned <= was + 1 and not late):
            return  # a second is rounding, but only one
        self.promises[key] = planned, at
        overran = "overrun" in causes and self.witness.overran(at / 1e6)
        if was and planned > was and not late and not overran and not self.witness.shrank_between(was_at / 1e6, at / 1e6):
            self.wrong(f"{key}: was promised {was} at {was_at}, then {planned} at {at}: {', '.join(sorted(causes))}")

    def disturb(self, n):
        """Others have their troubles, too."""
        if n % 170 == 169:
            self.restart("apiserver")
        if n % 410 == 409:
            self.restart("etcd")
        if self.books.pg and n % 60 == 59:
            self.report.restarts["PostgreSQL killed"] += 1
            self.outage = time.time() + 15
            self.books.pg.kill()
            if self.rng.random() < 0.5:
                self.life()
            self.books.pg.start()

    def restart(self, component):
        self.report.restarts[f"{component} restarted"] += 1
        self.outage = time.time() + 60
        process = self.spawn(None)  # one that lives through it
        time.sleep(1.0)
        self.cluster.kill(component)
        time.sleep(self.rng.uniform(0.1, 1.0))
        self.cluster.start(component)
        until(lambda: self.alive(), 60, "the API server")
        time.sleep(1.0)
        process.kill()
        process.wait()
        self.report.passed.update(self.points()[1])
        self.witness.shrink()  # a gang that could not be bound in the meantime looks for other nodes
        self.outage = time.time() + 3

    def alive(self):
        try:
            self.cluster.admin.list("namespaces")
            return True
        except Exception:
            return False

    # -- the whole -------------------------------------------------------------------------------

    def run(self, points, seed, minutes=None):
        begun = time.monotonic()
        audit = Audit(self.cluster.audit_log)
        self.prepare()
        n = 0
        with Witness(self.cluster.admin, SPACE) as self.witness:
            script = Script(self.cluster, self.witness, SPACE, seed, ask=lambda *question: self.daemon.request(*question))
            script.prepare()
            with script:
                while sum(self.report.kills.values()) < points:
                    if minutes and time.monotonic() - begun > minutes * 60:
                        break
                    n += 1
                    self.disturb(n)
                    self.life(n)
                    if n % 25 == 0:
                        self.say(self.progress(n, begun))
                        for name, seconds in self.witness.parts(PART_S, PART_LIVES):
                            self.say(f"  in part: {name} for {seconds:.1f} s")
            script.calm()
            self.end(script, audit)
            self.report.figures |= {
                "lives": n, "seconds": round(time.monotonic() - begun), "gangs": len(self.witness.gangs),
                "events seen": self.witness.events, "races with the default scheduler": self.witness.races,
                "longest in part": round(max((g.longest_part for g in self.witness.gangs.values()), default=0), 1),
                **{f"steps {k}": v for k, v in script.steps.items()},
            }  # fmt: skip
        self.books.close()
        return self.report

    def progress(self, n, begun):
        r = self.report
        return (
            f"{r.store}: life {n}, {sum(r.kills.values())} points at {len(r.kills)} places, {r.outside} from outside, "
            f"{len(self.witness.gangs)} gangs, {len(self.witness.open())} open, {len(r.wrong)} wrong, "
            f"{time.monotonic() - begun:.0f} s"
        )

    def end(self, script, audit):
        """The last life works undisturbed: all that was submitted ends, and nothing is out of order."""
        if script.failure:
            self.wrong(script.failure)
        process = self.spawn(None)
        seen, since = None, time.monotonic()
        while self.witness.open():
            script.look_at_jobs()
            if self.witness.progress() != seen:
                seen, since = self.witness.progress(), time.monotonic()
            if time.monotonic() - since > STUCK_S:
                for g in self.witness.open():
                    self.wrong(f"lost: gang {g.name} of {g.size}: {len(g.bound)} bound, {len(g.ended)} ended")
                break
            time.sleep(0.1)
        time.sleep(0.5)
        if process.poll() is not None:
            self.wrong(f"the last life ended by itself: {self.daemon.tail(5)}")
        for name, seconds in self.witness.parts(PART_S, PART_LIVES):
            self.wrong(f"gang {name} was in part for {seconds:.1f} s")
        for early, late in self.witness.overtaken():
            self.wrong(f"{late} overtook {early}, which is of the same shape")
        over = work.overbooked(self.cluster.admin)
        if over:
            self.wrong(f"overbooked at the end: {over}")
        twice = audit.bound_twice(SPACE)
        if twice:
            self.wrong(f"bound twice: {twice}")
        for name, count in Counter(e.split(":")[0] for e in self.report.early).items():
            self.wrong(f"{count} lives ended by themselves with {name}: {self.report.early[-1]}")
        process.terminate()
        if process.wait(10) != 0:
            self.wrong(f"the last life ended with {process.returncode}")
        self.look()


def torture(kind, points, seed=1, minutes=None, say=print):
    """One store's run, on a cluster of its own.  TORTURE_KEEP=1 keeps the daemon's log and store."""
    folder = tempfile.mkdtemp(prefix="sluice-torture-")
    say(f"{kind}: log and store in {folder}")
    try:
        nodes = [{"name": "node", "count": NODES, "cpu": CPU}]
        with Cluster(f"torture-{kind}-{os.getpid()}", node_list=nodes) as cluster:
            report = Torture(cluster, kind, seed, folder, say).run(points, seed, minutes)
    finally:
        if not os.environ.get("TORTURE_KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
    return report

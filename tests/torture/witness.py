"""The cluster seen from outside, event by event: is a node overbooked, a gang in part, the order broken?

Pods are watched in the order in which the API server changed them, so the books are exact at each
event: a pod holds its requests from the event that shows its node until the one that shows its end.
"""

import threading
import time
from collections import Counter, deque
from dataclasses import dataclass, field

from cluster.api import ApiError
from cluster.gangs import group_of
from cluster.work import quantity, requests

OURS = {"sluice", "fluence"}
#: Two schedulers cannot see each other's bindings on their way; what was bound so close together is theirs.
RACE_S = 3.0
#: What happened before it was asked may be seen so much later.
LAG_S = 5.0


@dataclass
class Gang:
    """One gang as it was submitted, and what was seen of it."""

    name: str
    size: int
    shape: tuple = ()  # gangs of equal shape start in order of arrival
    asked: float = 0.0  # when its last pod was submitted
    job: bool = False  # made by a Job
    finished: bool = False  # the Job says so
    fails: bool = False  # its pods end badly
    cancelled: float = None  # when it was taken out of the queue
    deleted: float = None  # when its objects were deleted by the script
    over: float = None  # when it was first seen to be done
    swept: bool = False  # and its objects deleted
    touched: bool = False  # nodes it could use changed, or it was replanned: order says nothing
    bound: set = field(default_factory=set)  # uids that have a node (ended ones too)
    ended: set = field(default_factory=set)
    succeeded: set = field(default_factory=set)
    whole: float = None  # when all were bound
    part_since: float = None
    part_life: int = 0  # the life it was in then
    longest_part: float = 0.0
    longest_lives: int = 0


class Witness:
    def __init__(self, api, space):
        self.api, self.space = api, space
        self.gangs = {}
        self.jobs = {}  # uid of a Job -> its gang
        self.wrong = []  # sentences
        self.races = 0
        self.lives = 0  # of the daemon, so far
        self.events = self.relists = 0
        self.shrank = deque(maxlen=4000)  # times at which room was taken from the plan
        self.ended = deque(maxlen=4000)  # (limit, end) of what held its node beyond its limit
        self._nodes, self._books, self._pods = {}, {}, {}
        self._over = set()  # pods that have ended
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        if not self._ready.wait(30):
            raise TimeoutError("the pods cannot be listed")
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(10)

    def gang(self, key):
        """The gang that the store calls so: namespace/g:NAME or namespace/u:UID."""
        name = key.split("/", 1)[1][2:]
        return self.gangs.get(name) or self.jobs.get(name)

    # -- what the script tells -----------------------------------------------------------------

    def expect(self, gang):
        with self._lock:
            self.gangs[gang.name] = gang
        return gang

    def shrink(self):
        self.shrank.append(time.time())
        with self._lock:
            for g in self.gangs.values():
                if g.whole is None:
                    g.touched = True

    def shrank_between(self, a, b):
        return any(a - 2 <= t <= b + 2 for t in self.shrank)

    def overran(self, t):
        """Whether something of ours held its node at that time, and longer than it may: it is counted from the
        decision, a little before the binding is seen, to the end, which daemon and witness see one after the other."""
        with self._lock:
            held = [*self.ended, *((x[4], time.time()) for book in self._books.values() for x in book.values())]
        return any(limit - LAG_S <= t <= end + LAG_S for limit, end in held)

    # -- watching ------------------------------------------------------------------------------

    def _run(self):
        while not self._stop.is_set():
            try:
                pods = self.api.list_full("pods")
                self._relist(pods["items"])
                version = pods["metadata"]["resourceVersion"]
                self._ready.set()
                while not self._stop.is_set():
                    for kind, pod in self.api.watch("pods", None, version, timeout=0.5, bookmarks=True):
                        version = pod["metadata"]["resourceVersion"]
                        if kind != "BOOKMARK":
                            self._event(kind, pod)
                        if self._stop.is_set():
                            break
            except (ApiError, OSError, ValueError):
                self._stop.wait(0.1)

    def _relist(self, items):
        with self._lock:
            self.relists += 1
            there = {p["metadata"]["uid"] for p in items}
            for uid in set(self._pods) - there:
                self._gone(uid, time.time())
            # A list is one moment: what has ended in it makes room for what is bound.
            for p in sorted(items, key=lambda p: p["status"].get("phase") not in ("Succeeded", "Failed")):
                self._event("ADDED", p)

    def nodes(self):
        """Read what nodes offer; called when the script changes them."""
        try:
            nodes = {
                n["metadata"]["name"]: {k: quantity(v) for k, v in n["status"]["allocatable"].items()}
                for n in self.api.list("nodes")
            }
        except (ApiError, OSError):
            return
        with self._lock:
            self._nodes = nodes

    def _event(self, kind, pod):
        now = time.time()
        uid = pod["metadata"]["uid"]
        with self._lock:
            self.events += 1
            if kind == "DELETED":
                self._gone(uid, now)
                return
            if uid in self._over:
                return  # kwok, late with its own view, may put a pod that has ended back to Running; a kubelet does not
            node = pod["spec"].get("nodeName")
            phase = pod["status"].get("phase", "Pending")
            ended = phase in ("Succeeded", "Failed")
            overran = False
            self._pods.setdefault(uid, None)
            if node and not ended:
                self._enter(uid, pod, node, now)
            elif ended:
                overran = self._leave(uid)
                self._over.add(uid)
            if pod["metadata"]["namespace"] == self.space:
                # Ended by us at its limit, which kwok let it reach: it had its time.
                self._member(uid, pod, bool(node), "Succeeded" if overran else phase, now)

    def _gone(self, uid, now):
        overran = self._leave(uid)
        gang = self._pods.pop(uid, None)
        self._over.discard(uid)
        if gang and overran:
            gang.ended.add(uid)
            gang.succeeded.add(uid)
        if gang:
            gang.bound.discard(uid)
            self._note(gang, now)

    # -- books ---------------------------------------------------------------------------------

    def _enter(self, uid, pod, node, now):
        book = self._books.setdefault(node, {})
        if uid in book:
            return
        ours = pod["spec"].get("schedulerName") in OURS or "sluice.sh/node" in pod["metadata"].get("labels", {})
        if not ours:
            self.shrink()
        limit = pod["metadata"].get("annotations", {}).get("sluice.sh/duration", "1000000s")
        book[uid] = (requests(pod), now, ours, pod["metadata"]["name"], now + int(limit.removesuffix("s")))
        room = self._nodes.get(node)
        if room is None:
            return
        used = Counter()
        for need, *_ in book.values():
            used.update(need)
        over = {k: (str(v), str(room.get(k, 0))) for k, v in used.items() if v > room.get(k, 0)}
        if not over:
            return
        recent = [x for x in book.values() if now - x[1] < RACE_S]
        if any(not x[2] for x in recent) and any(x[2] for x in recent):
            self.races += 1  # the default scheduler and ours took the same room in the same moment
        else:
            names = [f"{x[3]}{'' if x[2] else ' (foreign)'}" for x in book.values()]
            self.wrong.append(f"node {node} is overbooked at {now:.3f} by {pod['metadata']['name']}: {over}, holds {names}")

    def _leave(self, uid):
        """It holds nothing any more; whether it held its node as long as it may."""
        for book in self._books.values():
            held = book.pop(uid, None)
            if held and held[4] - LAG_S < time.time():
                self.ended.append((held[4], time.time()))
                return True
        return False

    # -- gangs ---------------------------------------------------------------------------------

    def _member(self, uid, pod, bound, phase, now):
        group = group_of(pod)
        name = group[0][1] if group else pod["metadata"].get("labels", {}).get("torture/gang")
        gang = self.gangs.get(name)
        if gang is None:
            return
        self._pods[uid] = gang
        if bound and uid not in gang.bound:
            gang.bound.add(uid)
            if gang.cancelled and now > gang.cancelled + LAG_S:
                late = now - gang.cancelled
                self.wrong.append(f"{pod['metadata']['name']} was bound {late:.1f} s after it was taken out of the queue")
        if phase in ("Succeeded", "Failed"):
            gang.ended.add(uid)
        if phase == "Succeeded":
            gang.succeeded.add(uid)
        self._note(gang, now)

    def _note(self, gang, now):
        if gang.whole is None and len(gang.bound) >= gang.size:
            gang.whole = now
        part = gang.whole is None and 0 < len(gang.bound) and gang.deleted is None
        if part and gang.part_since is None:
            gang.part_since, gang.part_life = now, self.lives
        if gang.part_since is not None:
            self._measure(gang, now)
            if not part:
                gang.part_since = None

    def _measure(self, gang, now):
        gang.longest_part = max(gang.longest_part, now - gang.part_since)
        gang.longest_lives = max(gang.longest_lives, self.lives - gang.part_life)

    # -- questions -----------------------------------------------------------------------------

    def open(self):
        """Gangs that are expected to end and have not."""
        with self._lock:
            return [g for g in self.gangs.values() if g.deleted is None and g.cancelled is None and not self.done(g)]

    @staticmethod
    def done(g):
        if g.job:
            return g.finished
        return len(g.ended if g.fails else g.succeeded) >= g.size

    def parts(self, seconds, lives=0):
        """(gang, seconds) in part for longer than that, and for more lives, then or now."""
        now = time.time()
        with self._lock:
            for g in self.gangs.values():
                if g.part_since is not None:
                    self._measure(g, now)
            return [
                (g.name, g.longest_part) for g in self.gangs.values()
                if g.longest_part > seconds and g.longest_lives >= lives
            ]  # fmt: skip

    def progress(self):
        """Grows as long as anything is placed or ends."""
        with self._lock:
            return sum(len(g.bound) + len(g.ended) + g.finished for g in self.gangs.values())

    def overtaken(self, slack=2.0):
        """Pairs of gangs of one shape in which the later one started clearly before the earlier one."""
        with self._lock:
            gangs = [g for g in self.gangs.values() if g.shape and g.deleted is None and not g.touched]
        pairs = []
        for g in gangs:
            for h in gangs:
                if g.shape == h.shape and g.asked + slack < h.asked and h.whole is not None:
                    if (g.whole or float("inf")) > h.whole + 1:
                        pairs.append((g.name, h.name))
        return pairs

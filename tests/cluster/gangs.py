"""A watcher that looks at gangs from outside: when was which one started in part only?"""

import threading
import time
from dataclasses import dataclass, field

from .api import ApiError
from .patience import PATIENCE_S, patient

#: Keys that name a group and its size, as labels or annotations of a pod.
KEYS = [
    ("sluice.sh/group", "sluice.sh/size"),
    ("scheduling.x-k8s.io/pod-group", "fluence.group-size"),
    ("fluence.pod-group", "fluence.group-size"),
    ("fluence.flux-framework.org/pod-group", "fluence.flux-framework.org/group-size"),
    ("fluxnetes.group-name", "fluxnetes.group-size"),
]


def group_of(pod):
    """(group, size) of a pod by its labels and annotations; None when it is in no group of known size."""
    meta = pod["metadata"]
    keys = {**meta.get("annotations", {}), **meta.get("labels", {})}
    for name, size in KEYS:
        if name in keys and keys.get(size, "").isdigit():
            return (meta["namespace"], keys[name]), int(keys[size])
    return None


@dataclass
class Interval:
    start: float
    end: float = None  # None: still so
    most: int = 0  # pods at most in this time
    held: int = 0  # pods at its end

    def seconds(self, now=None):
        return (self.end if self.end is not None else now or time.time()) - self.start


@dataclass
class Gang:
    """What was seen of one gang.  Times are seconds since 1970, when the event came in."""

    name: tuple
    size: int
    first_seen: float
    bound: set = field(default_factory=set)  # uids of pods with a node that have not failed or gone
    running: set = field(default_factory=set)  # of these, the ones that run or have ended well
    whole_at: float = None  # all bound
    running_at: float = None  # all running
    done_at: float = None  # all ended well
    partly_bound: list = field(default_factory=list)  # Intervals with some but not all bound
    partly_running: list = field(default_factory=list)  # Intervals with some but not all running
    clogged: float = 0.0  # pod-seconds held by bound pods while the gang was not whole
    _succeeded: set = field(default_factory=set)
    _last: float = None

    @property
    def half_started(self):
        """Some are bound, never all."""
        return self.whole_at is None and 0 < len(self.bound) < self.size


class GangWatch:
    """Watches pods in a thread of its own, through restarts of the API server.

        with GangWatch(cluster.admin) as watch:
            ...
        assert not watch.longest_partial() > 2

    The pods of a gang are bound one request after the other, so a short time in parts is natural;
    what matters is how long it lasts and whether it ends.
    """

    def __init__(self, api, namespace=None, group_of=group_of, labels=None):
        self.api = api
        self.namespace = namespace
        self.labels = labels  # selector: look at these pods only
        self.group_of = group_of
        self.gangs = {}
        self.events = 0
        self.relists = 0
        self._pods = {}  # (namespace, name) -> (uid, gang)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gang-watch", daemon=True)

    def start(self):
        self._thread.start()
        if not self._ready.wait(PATIENCE_S):
            raise TimeoutError("the pods cannot be listed")
        return self

    def stop(self):
        self._stop.set()
        self._thread.join(10)
        return self

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def _run(self):
        while not self._stop.is_set():
            try:
                pods = self.api.list_full("pods", self.namespace, self.labels)
                self._relist(pods["items"])
                version = pods["metadata"]["resourceVersion"]
                self._ready.set()
                while not self._stop.is_set():
                    for kind, pod in self.api.watch(
                        "pods", self.namespace, version, self.labels, timeout=0.5, bookmarks=True
                    ):
                        version = pod["metadata"]["resourceVersion"]
                        if kind != "BOOKMARK":
                            self._event(kind, pod)
                        if self._stop.is_set():
                            break
            except (ApiError, OSError, ValueError):
                self._stop.wait(0.1)  # gone, compacted or cut: list again

    def _relist(self, pods):
        self.relists += 1
        for pod in pods:
            self._event("MODIFIED", pod)
        present = {(p["metadata"]["namespace"], p["metadata"]["name"]) for p in pods}
        for key in set(self._pods) - present:
            self._gone(key, time.time())

    def _gone(self, key, now):
        uid, gang = self._pods.pop(key)
        with self._lock:
            gang.bound.discard(uid)
            if uid not in gang._succeeded:
                gang.running.discard(uid)
            self._note(gang, now)

    def _event(self, kind, pod):
        now = time.time()
        self.events += 1
        meta = pod["metadata"]
        key = (meta["namespace"], meta["name"])
        if kind == "DELETED":
            if key in self._pods:
                self._gone(key, now)
            return
        group = self.group_of(pod)
        if group is None:
            return
        if key in self._pods and self._pods[key][0] != meta["uid"]:
            self._gone(key, now)  # the same name again
        with self._lock:
            gang = self.gangs.setdefault(group[0], Gang(group[0], group[1], now))
            self._pods[key] = (meta["uid"], gang)
            phase = pod.get("status", {}).get("phase", "Pending")
            sets = (gang.bound, gang.running, gang._succeeded)
            member = (
                bool(pod["spec"].get("nodeName")) and phase != "Failed",
                phase in ("Running", "Succeeded"),
                phase == "Succeeded",
            )
            for s, is_in in zip(sets, member, strict=True):
                (s.add if is_in else s.discard)(meta["uid"])
            self._note(gang, now)

    def _note(self, gang, now):
        """The state of a gang after an event: open and close intervals, count clogged time."""
        if gang._last is not None and gang.partly_bound and gang.partly_bound[-1].end is None:
            gang.clogged += gang.partly_bound[-1].held * (now - gang._last)
        gang._last = now
        if gang.whole_at is None and len(gang.bound) >= gang.size:
            gang.whole_at = now
        if gang.running_at is None and len(gang.running) >= gang.size:
            gang.running_at = now
        if gang.done_at is None and len(gang._succeeded) >= gang.size:
            gang.done_at = now
        ending = bool(gang._succeeded) and gang.whole_at is not None  # members end one by one
        for members, intervals in ((gang.bound, gang.partly_bound), (gang.running, gang.partly_running)):
            part = 0 < len(members) < gang.size and not ending
            is_open = bool(intervals) and intervals[-1].end is None
            if part and not is_open:
                intervals.append(Interval(now))
            elif not part and is_open:
                intervals[-1].end = now
            if part:
                intervals[-1].most = max(intervals[-1].most, len(members))
                intervals[-1].held = len(members)

    # -- questions -----------------------------------------------------------------------------

    def snapshot(self):
        with self._lock:
            return dict(self.gangs)

    def partial(self, longer_than=0.0, what="partly_bound"):
        """{group: [intervals]} in which some but not all pods were bound (or "partly_running")."""
        now = time.time()
        found = {}
        for name, gang in self.snapshot().items():
            intervals = [i for i in getattr(gang, what) if i.seconds(now) > longer_than]
            if intervals:
                found[name] = intervals
        return found

    def longest_partial(self, what="partly_bound"):
        """Seconds of the longest such time; 0 when there was none."""
        now = time.time()
        return max((i.seconds(now) for g in self.partial(what=what).values() for i in g), default=0.0)

    def half_started(self):
        """Names of gangs of which some pods hold nodes and which were never whole."""
        return sorted(name for name, g in self.snapshot().items() if g.half_started)

    def finished(self):
        return sorted(name for name, g in self.snapshot().items() if g.done_at is not None)

    def clogged(self):
        """Pod-seconds held by gangs while they were not whole."""
        now = time.time()
        total = 0.0
        for gang in self.snapshot().values():
            total += gang.clogged
            if gang.partly_bound and gang.partly_bound[-1].end is None:
                total += gang.partly_bound[-1].held * (now - gang._last)
        return total

    def wait(self, test, timeout=0):
        """Until test(self) holds; TimeoutError otherwise."""
        timeout = patient(timeout)
        end = time.monotonic() + timeout
        while not test(self):
            if time.monotonic() > end:
                seen = self.snapshot().values()
                raise TimeoutError(
                    f"after {timeout:.0f} s: {len(self.finished())} of {len(self.gangs)} gangs finished, "
                    f"{sum(g.whole_at is not None for g in seen)} were whole, {sum(g.running_at is not None for g in seen)} ran, "
                    f"half-started {self.half_started()[:5]}"
                )
            time.sleep(0.05)
        return self

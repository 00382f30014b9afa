"""The witness sees what is wrong: a test that could not fail would prove nothing."""

import time

from cluster import work
from cluster.work import quantity

from .lives import PART_LIVES, Report, Torture
from .witness import Gang, Witness


def witness():
    w = Witness(None, "s")
    w._nodes = {"n": {"cpu": quantity("8"), "memory": quantity("32Gi"), "pods": quantity("3")}}
    return w


def event(w, kind, pod, uid, phase="Pending", node=None):
    pod["metadata"]["uid"] = uid
    pod["status"] = {"phase": phase}
    if node:
        pod["spec"]["nodeName"] = node
    w._event(kind, pod)


def pods(name, size, cpu=4):
    return work.gang(name, size, cpu=cpu, namespace="s", scheduler="sluice")


def test_overbooked_cpu():
    w = witness()
    for i, p in enumerate(pods("g", 3)):
        event(w, "MODIFIED", p, f"u{i}", "Running", "n")
    assert len(w.wrong) == 1 and "overbooked" in w.wrong[0]


def test_overbooked_pod_count():
    w = witness()
    for i, p in enumerate(pods("g", 4, cpu=1)):
        event(w, "MODIFIED", p, f"u{i}", "Running", "n")
    assert len(w.wrong) == 1 and "pods" in w.wrong[0]


def test_room_is_used_again():
    w = witness()
    a, b, c = pods("g", 3)
    event(w, "MODIFIED", a, "a", "Running", "n")
    event(w, "MODIFIED", b, "b", "Running", "n")
    event(w, "MODIFIED", a, "a", "Succeeded", "n")
    event(w, "MODIFIED", c, "c", "Running", "n")
    assert not w.wrong


def test_ended_is_ended():
    w = witness()
    a, b = pods("g", 1, cpu=8) + pods("h", 1)
    event(w, "MODIFIED", a, "a", "Running", "n")
    event(w, "MODIFIED", a, "a", "Failed", "n")
    event(w, "MODIFIED", b, "b", "Running", "n")
    event(w, "MODIFIED", a, "a", "Running", "n")
    assert not w.wrong


def test_ended_at_its_limit():
    w = witness()
    gang, early = w.expect(Gang("g", 1)), w.expect(Gang("h", 1))
    for name, uid, limit in (("g", "a", "0s"), ("h", "b", "60s")):
        (p,) = pods(name, 1)
        p["metadata"].setdefault("annotations", {})["sluice.sh/duration"] = limit
        event(w, "MODIFIED", p, uid, "Running", "n")
        event(w, "MODIFIED", p, uid, "Failed", "n")
    assert w.done(gang) and not w.done(early)


def test_list_after_a_cut():
    w = witness()
    a, b, c = pods("g", 3)
    event(w, "MODIFIED", a, "a", "Running", "n")
    event(w, "MODIFIED", b, "b", "Running", "n")
    for uid, p, phase in (("a", a, "Succeeded"), ("b", b, "Running"), ("c", c, "Running")):
        p["metadata"]["uid"], p["status"], p["spec"]["nodeName"] = uid, {"phase": phase}, "n"
    w._relist([c, b, a])
    assert not w.wrong


def test_in_part():
    w = witness()
    gang = w.expect(Gang("g", 2))
    a, b = pods("g", 2)
    event(w, "MODIFIED", a, "a", node="n")
    gang.part_since = time.time() - 60
    assert w.parts(30) and not gang.whole
    event(w, "MODIFIED", b, "b", node="n")
    assert gang.whole and gang.longest_part >= 60
    assert w.open() == [gang]
    for uid, p in (("a", a), ("b", b)):
        event(w, "MODIFIED", p, uid, "Succeeded")
    assert not w.open()


def test_started_though_cancelled():
    w = witness()
    gang = w.expect(Gang("g", 2))
    a, b = pods("g", 2)
    gang.cancelled = time.time()
    event(w, "MODIFIED", a, "a", node="n")  # seen late
    assert not w.wrong
    gang.cancelled = time.time() - 60
    event(w, "MODIFIED", b, "b", node="n")
    assert len(w.wrong) == 1 and "taken out of the queue" in w.wrong[0]
    assert not w.open()


def test_overtaken():
    w = witness()
    w.expect(Gang("first", 1, shape=("x",), asked=100, whole=200))
    w.expect(Gang("second", 1, shape=("x",), asked=110, whole=150))
    assert w.overtaken() == [("first", "second")]
    w.gangs["first"].touched = True
    assert not w.overtaken()


class Looks(Torture):
    """Only what is compared between two lives."""

    def __init__(self):
        self.report, self.say = Report("sqlite"), lambda text: None
        self.last, self.seen, self.promises, self.missing = {}, {}, {}, {}
        self.witness, self.books = witness(), self

    def life(self, jobs, plans=None):
        self.witness.lives += 1
        self.now = {f"s/g:{name}": row for name, row in jobs.items()}, plans or {}
        Torture.look(self)
        return len(self.report.wrong)

    def look(self):
        return self.now


def test_store_forgets():
    t = Looks()
    waits, over = t.witness.expect(Gang("waits", 1)), t.witness.expect(Gang("over", 2, job=True))
    t.life({"waits": (1, 100), "over": (2, 100)})
    t.life({})
    assert set(t.missing) == {"s/g:waits", "s/g:over"}
    over.finished = True  # a Job that failed before all of it had a place
    for key in t.missing:
        t.missing[key] = (time.time() - 60, -PART_LIVES)
    assert t.life({}) == 1 and "the store forgot" in t.report.wrong[0] and repr(waits) in t.report.wrong[0]


def test_place_in_the_queue():
    t = Looks()
    t.witness.expect(Gang("g", 1))
    t.life({"g": (1, 100)})
    t.life({})
    assert t.life({"g": (2, 100)}) == 0
    assert t.life({"g": (2, 101)}) == 1, "also lives after it was missing"


def test_promise_broken():
    t = Looks()
    now = int(time.time())
    t.witness.expect(Gang("g", 1))

    def life(job, second, planned, cause="new"):
        return t.life({"g": (job, 100)}, {job: {(now + second) * 1000000: [planned and now + planned, {cause}]}})

    life(1, 0, 60)
    assert life(1, 1, 0, "dropped") == 0
    assert life(2, 2, 61) == 0, "a second is rounding"
    assert life(2, 3, 62) == 1, "but only one"
    assert life(2, 4, 70, "overrun") == 2, "nothing has overrun"
    a, b = pods("a", 2)
    a["metadata"]["annotations"] = {"sluice.sh/duration": "30s"}
    b["metadata"]["annotations"] = {"sluice.sh/duration": "3s"}
    event(t.witness, "MODIFIED", a, "a", "Running", "n")
    assert life(2, 5, 75, "overrun") == 3, "nor has this"
    event(t.witness, "MODIFIED", b, "b", "Running", "n")
    event(t.witness, "MODIFIED", b, "b", "Failed", "n")
    assert life(2, 0, 80, "new") == 4, "that has, but is not said to be the cause"
    assert life(2, 0, 85, "overrun") == 4, "now it is"
    t.witness.shrink()
    assert life(2, 6, 90, "foreign") == 4, "room was taken"

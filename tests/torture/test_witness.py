"""The witness sees what is wrong: a test that could not fail would prove nothing."""

import time

from cluster import work
from cluster.work import quantity

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

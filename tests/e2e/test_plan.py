"""Priorities, limits, deadlines, drains and reservations, set by people and by objects: on a real server, across a
restart, replayed."""

import json
import sqlite3
import subprocess
import time
from datetime import datetime, timezone

import pytest

from cluster import work
from cluster.api import Api, ApiError

from .conftest import crds, until
from .daemon import Sluiced, program

CLUSTER = {"node_list": [{"name": "node", "count": 4, "cpu": 4}]}
# The first in line has its promise at once.
SETTINGS = {"queues": [{"name": "default", "objective": "throughput"}], "status": {"interval": "1s", "audit": "2s"}}


def stamp(s):
    return datetime.fromtimestamp(int(s), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.fixture(scope="module")
def sluiced(module_cluster, tmp_path_factory):
    crds(module_cluster)
    folder = tmp_path_factory.mktemp("plan")
    with Sluiced(module_cluster, SETTINGS, store=str(folder / "sluice.db"), folder=folder) as d:
        yield d
        assert d.process.poll() is None, d.tail(40)
        for line in d.log.read_text().splitlines():
            assert "plan and cluster disagree" not in line and "cycle failed" not in line and "queue rejected" not in line, line
    # Whatever the tests below did is decided again, the same way.
    assert json.loads(run("replay", d.store, "-o", "json", "--verify"))["reproduced"]


def run(*args, code=0):
    p = subprocess.run([program("sluice"), *map(str, args)], capture_output=True, text=True, timeout=300)
    assert p.returncode == code, (p.stdout, p.stderr)
    return p.stdout if code == 0 else p.stderr


@pytest.fixture
def sluice(sluiced, space):
    """sluice("why", "a"): as a person would type it, in the test's namespace."""

    def ask(command, *args, code=0, spaced=True):
        return run(command, "-s", f"unix:{sluiced.socket}", *(("-n", space) if spaced else ()), *args, code=code)

    return ask


@pytest.fixture
def gang(module_cluster, space):
    def make(name, size, keys=None, run=600, **more):
        notes = {f"sluice.sh/{k}": str(v) for k, v in (keys or {}).items()}
        for p in work.gang(name, size, **{"cpu": 4, "namespace": space, "run": run, "scheduler": "sluice", "annotations": notes, **more}):
            module_cluster.admin.create(p)

    return make


@pytest.fixture
def placed(module_cluster, space):
    return lambda prefix: [p["spec"]["nodeName"] for p in module_cluster.admin.list("pods", space)
                           if p["metadata"]["name"].startswith(prefix + "-") and p["spec"].get("nodeName")]  # fmt: skip


def history(d, job):
    with sqlite3.connect(f"file:{d.store}?mode=ro", uri=True) as db:
        return [row[0] for row in db.execute("SELECT cause FROM plans WHERE job = ? ORDER BY seq", (job,))]


def test_priority_and_limit(module_cluster, sluiced, sluice, gang, placed, space):
    jobs = lambda: sluiced.jobs(space)  # noqa: E731
    gang("runs", 4, {"duration": "10m"})
    until(lambda: len(placed("runs")) == 4)
    gang("first", 4, {"duration": "5m"})
    until(lambda: jobs().get("first", {}).get("promised"))
    # A longer limit of what runs moves the promise of who waits for it, and the history says why.
    before = seconds(jobs()["first"]["estimate"])
    assert "runs has a limit of 20m now" in sluice("limit", "runs", "20m")
    until(lambda: abs(seconds(jobs()["first"]["estimate"]) - before - 600) <= 1)
    assert seconds(jobs()["runs"]["end"]) - seconds(jobs()["runs"]["start"]) == 1200
    assert "overrun" in history(sluiced, jobs()["first"]["id"])
    gang("second", 2, {"duration": "20m"})
    gang("third", 2, {"duration": "20m"})
    until(lambda: jobs().get("third", {}).get("position") == 3)
    assert "third has priority 50 now" in sluice("priority", "third", "50")
    until(lambda: jobs()["third"]["priority"] == 50 and jobs()["third"]["position"] < jobs()["second"]["position"])
    assert "is not a priority" in sluice("priority", "third", "high", code=1)
    assert "no job" in sluice("limit", "nobody", "1h", code=1)
    assert "is not a limit" in sluice("limit", "third", "soon", code=1)

    assert "limit 600 s becomes 1200 s" in history(sluiced, jobs()["runs"]["id"])
    assert "priority 0 becomes 50" in history(sluiced, jobs()["third"]["id"])
    assert "Priority     50" in sluice("job", "third")

    # The user's own word, on the object.
    pod = module_cluster.admin.list("pods", space)
    name = next(p["metadata"]["name"] for p in pod if p["metadata"]["name"].startswith("second-"))
    for p in pod:
        if p["metadata"]["name"].startswith("second-"):
            module_cluster.admin.patch("pods", p["metadata"]["name"], {"metadata": {"annotations": {"sluice.sh/duration": "1h"}}}, space)
    until(lambda: jobs()["second"]["limitSeconds"] == 3600, message=name)

    sluiced.kill()
    sluiced.start()
    until(lambda: jobs().get("third", {}).get("priority") == 50 and jobs()["third"]["position"] < jobs()["second"]["position"])
    assert seconds(jobs()["runs"]["end"]) - seconds(jobs()["runs"]["start"]) == 1200
    # Where the members have no maker, the notes are on the first of them.
    notes = [p["metadata"]["annotations"].get("sluice.sh/set-priority") for p in module_cluster.admin.list("pods", space)
             if p["metadata"]["name"].startswith("third-")]  # fmt: skip
    assert "50" in notes
    assert "has the priority of its objects" in sluice("priority", "third", "own")
    until(lambda: jobs()["third"]["priority"] == 0 and jobs()["third"]["position"] > jobs()["second"]["position"])


def test_limit_of_a_job(module_cluster, sluiced, sluice, placed, space):
    """Kubernetes ends a Job by its activeDeadlineSeconds, so `sluice limit` sets that field."""
    body = work.job("timed", 2, namespace=space, cpu=4, run=600, scheduler="sluice")
    body["spec"]["activeDeadlineSeconds"] = 300
    module_cluster.admin.create(body)
    until(lambda: len(placed("timed")) == 2)
    assert "activeDeadlineSeconds 300 becomes 7200" in sluice("limit", "timed", "2h")
    until(lambda: sluiced.jobs(space)["timed"]["limitSeconds"] == 7200)
    job = module_cluster.admin.get("jobs", "timed", space)
    assert job["spec"]["activeDeadlineSeconds"] == 7200
    assert "sluice.sh/set-limit" not in job["metadata"].get("annotations", {})


def test_drain_window(module_cluster, sluiced, sluice, gang, placed, space):
    """The plan counts on a node that is drained with an end, also while the node is down, and across a restart."""
    jobs = lambda: sluiced.jobs(space)  # noqa: E731
    node = "node-0" if "node-0" in sluiced.nodes() else sorted(sluiced.nodes())[0]
    drain = lambda *args, **more: sluice("drain", *args, spaced=False, **more)  # noqa: E731
    end = int(time.time()) + 600
    assert "is not a time" in drain(node, "--until", "noon", code=1)
    assert f"{node} takes no new work until {stamp(end)}" in drain(node, "--until", stamp(end))
    until(lambda: sluiced.nodes()[node]["state"] == "drained")
    gang("wide", 4, {"duration": "5m"})
    until(lambda: jobs().get("wide", {}).get("promised") and abs(seconds(jobs()["wide"]["estimate"]) - end) <= 1)
    module_cluster.admin.patch("nodes", node, {"spec": {"unschedulable": True}}, None)
    module_cluster.admin.wait("nodes", node, lambda n: n["spec"].get("taints"), namespace=None)
    stays = time.time() + 1
    until(lambda: time.time() > stays and abs(seconds(jobs()["wide"]["estimate"]) - end) <= 1)
    sluiced.kill()
    sluiced.start()
    until(lambda: jobs().get("wide", {}).get("promised") and abs(seconds(jobs()["wide"]["estimate"]) - end) <= 1)
    assert sluiced.nodes()[node]["state"] == "drained" and f"drained until {stamp(end)}" in sluice("nodes", spaced=False)
    module_cluster.admin.patch("nodes", node, {"spec": {"unschedulable": None}}, None)
    soon = int(time.time()) + 5
    assert "until" in drain(node, "--until", stamp(soon))
    until(lambda: len(placed("wide")) == 4)
    assert time.time() >= soon and sluiced.nodes()[node]["state"] == "up"
    # What would not end before a window is not begun.
    for i in range(4):
        module_cluster.admin.delete("pods", f"wide-{i}", space, grace=0)
    for name in sluiced.nodes():
        drain(name, "--from", "+10m", "--until", "+20m")
    gang("long", 4, {"duration": "15m"})
    gang("short", 4, {"duration": "5m"})
    until(lambda: len(placed("short")) == 4)
    assert not placed("long") and seconds(jobs()["long"]["estimate"]) >= time.time() + 1000
    for name in sluiced.nodes():
        assert "takes work again" in sluice("undrain", name, spaced=False)


def test_reservation(module_cluster, sluiced, sluice, gang, placed, space):
    jobs = lambda: sluiced.jobs(space)  # noqa: E731
    admin = module_cluster.admin
    mine = lambda: {r["name"]: r for r in sluiced.get("/v1/reservations")["reservations"] if r["namespace"] == space}  # noqa: E731
    begin = int(time.time()) + 900
    said = sluice("reserve", "class", "--count", "4", "--from", stamp(begin), "--until", stamp(begin + 600), "--every", "1d")
    assert "reservation class was created" in said
    until(lambda: mine().get("class", {}).get("phase") == "Planned" and len(mine()["class"]["nodes"]) == 4)
    status = until(lambda: admin.get("reservations", "class", space).get("status"))
    assert status["phase"] == "Planned" and status["from"] == stamp(begin) and len(status["nodes"]) == 4
    assert [c["status"] for c in status["conditions"] if c["type"] == "Planned"] == ["True"]
    gang("long", 4, {"duration": "20m"})
    until(lambda: jobs().get("long", {}).get("promised") and abs(seconds(jobs()["long"]["estimate"]) - begin - 600) <= 1)
    assert f'reservation "{space}/class"' in sluice("why", "long")
    gang("ours", 4, {"duration": "20m", "reservation": "class"})
    until(lambda: len(placed("ours")) == 4)
    assert not placed("long")

    nodes = mine()["class"]["nodes"]
    sluiced.kill()
    sluiced.start()
    until(lambda: mine().get("class", {}).get("nodes") == nodes)
    gang("nobody", 1, {"reservation": "nothing"})
    until(lambda: 'no Reservation "nothing"' in jobs().get("nobody", {}).get("reason", ""))
    assert "RESERVATION" in sluice("reservations") and "Planned" in sluice("reservations")
    assert "already" in sluice("reserve", "class", "--count", "1", "--until", "+1h", code=1)
    assert "give either --nodes or --count" in sluice("reserve", "x", "--until", "+1h", code=2)
    assert "the API server refused" in sluice("reserve", "Not_A_Name", "--count", "1", "--until", "+1h", code=1)

    assert "is over" in sluice("unreserve", "class")
    until(lambda: mine()["class"]["phase"] == "Ended")
    until(lambda: admin.get("reservations", "class", space)["status"]["phase"] == "Ended")
    for i in range(4):
        admin.delete("pods", f"ours-{i}", space, grace=0)
    until(lambda: len(placed("long")) == 4)
    # An object of one's own, and its end.
    admin.create({"apiVersion": "sluice.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "own", "namespace": space},
                  "spec": {"nodes": [nodes[0]], "start": stamp(time.time()), "end": stamp(time.time() + 600)}})  # fmt: skip
    until(lambda: mine().get("own", {}).get("phase") == "Active")
    admin.delete("reservations", "own", space)
    until(lambda: "own" not in mine())


def test_rules_older_than_the_daemon(module_cluster, sluiced, gang, placed, space):
    """Rules that do not name reservations: the daemon is ready and works, says so once, and uses reservations when
    the rules are applied."""
    admin, sluice = module_cluster.admin, Api.from_kubeconfig(module_cluster.sluice_kubeconfig)
    role = admin.get("clusterroles", "sluice", None)

    def listed():
        try:
            return sluice.list("reservations", space) is not None
        except ApiError:
            return False

    sluiced.stop()
    before = len(sluiced.log.read_text())
    admin.patch("clusterroles", "sluice", {"rules": [r for r in role["rules"] if "sluice.sh" not in r.get("apiGroups", [])]}, None)
    try:
        until(lambda: not listed())
        sluiced.start()
        gang("plain", 2)
        until(lambda: len(placed("plain")) == 2)
    finally:
        admin.patch("clusterroles", "sluice", {"rules": role["rules"]}, None)
        if not sluiced.ready():
            sluiced.start()
    admin.create({"apiVersion": "sluice.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "after", "namespace": space},
                  "spec": {"count": 1, "start": stamp(time.time() + 600), "end": stamp(time.time() + 1200)}})  # fmt: skip
    until(lambda: admin.get("reservations", "after", space).get("status", {}).get("phase") == "Planned", 40, "looked at again")
    said = [line for line in sluiced.log.read_text()[before:].splitlines() if " warn " in line or " error " in line]
    assert len(said) == 1 and "apply deploy/rbac.yaml again" in said[0] and "kind=Reservation" in said[0], said
    admin.delete("reservations", "after", space)


def test_deadline(module_cluster, sluiced, sluice, gang, placed, space):
    events = lambda name: [e["message"] for e in module_cluster.admin.list("events", space)  # noqa: E731
                           if e["reason"] == "FailedScheduling" and e["involvedObject"]["name"].startswith(name)]  # fmt: skip
    gang("runs", 4, {"duration": "30m"})
    until(lambda: len(placed("runs")) == 4)
    by = stamp(time.time() + 1200)
    gang("late", 1, {"duration": "10m", "deadline": by})
    until(lambda: any(f"cannot end by its deadline {by}" in m for m in events("late")), message="an event tells it")
    assert f"cannot end by its deadline {by}" in sluice("why", "late")
    assert by in sluice("job", "late")
    gang("never", 1, {"duration": "10m", "deadline": stamp(time.time() + 60)})
    until(lambda: sluiced.jobs(space).get("never", {}).get("state") == "never")
    assert "too late to start" in sluice("why", "never")
    # More room in time: both can run.
    for name in ("late-0", "never-0"):
        module_cluster.admin.patch("pods", name, {"metadata": {"annotations": {"sluice.sh/deadline": stamp(time.time() + 7200)}}}, space)
    until(lambda: sluiced.jobs(space)["never"]["state"] == "waiting" and "deadline" not in sluiced.jobs(space)["late"]["reason"])
    for i in range(4):
        module_cluster.admin.delete("pods", f"runs-{i}", space, grace=0)
    until(lambda: placed("late") and placed("never"))


def test_part_of_each_node_and_users(module_cluster, sluiced, sluice, gang, placed, space):
    """2 of 4 cpus of each node are set aside for a user: others get the rest, the user needs no key.  Without the webhook
    a gang's user is its namespace."""
    other = f"{space}-other"
    module_cluster.namespace(other)
    sluice("reserve", "half", "--count", "4", "--amounts", "cpu=2", "--until", "+30m", "--users", other)
    until(lambda: "Active" in sluice("reservations"))
    gang("whole", 1, {"duration": "10m"})
    gang("halves", 4, {"duration": "10m"}, cpu=2)
    until(lambda: len(placed("halves")) == 4)
    assert not placed("whole") and f'reservation "{space}/half"' in sluice("why", "whole")
    gang("theirs", 4, {"duration": "10m"}, cpu=2, namespace=other)
    until(lambda: sum(bool(p["spec"].get("nodeName")) for p in module_cluster.admin.list("pods", other)) == 4)
    module_cluster.admin.delete_all("pods", other, grace=0)
    sluice("unreserve", "half")
    module_cluster.admin.delete("namespaces", other, None)


def test_recurring(module_cluster, sluiced, sluice, gang, placed, space):
    """What ends before the next occurrence starts between two of them; what is longer waits for the last that is planned."""
    begin = int(time.time()) + 600
    sluice("reserve", "nightly", "--count", "4", "--from", stamp(begin), "--until", stamp(begin + 600), "--every", "1h")
    until(lambda: "Planned" in sluice("reservations"))
    gang("long", 4, {"duration": "2h"})
    last = begin + 7 * 3600 + 600
    until(lambda: abs(seconds(sluiced.jobs(space).get("long", {}).get("estimate") or stamp(0)) - last) <= 1, message="after the eighth")
    gang("fits", 4, {"duration": "5m"})
    until(lambda: len(placed("fits")) == 4)
    module_cluster.admin.delete("reservations", "nightly", space)
    for i in range(4):
        module_cluster.admin.delete("pods", f"fits-{i}", space, grace=0)
    until(lambda: len(placed("long")) == 4)


def test_who_passed_and_what_would_help(module_cluster, sluiced, sluice, gang, placed, space):
    """A harmless backfill is named with no delay.  What would help was tried: the smaller gang does start."""
    gang("runs", 3, {"duration": "20m"})
    until(lambda: len(placed("runs")) == 3)
    gang("wide", 2, {"duration": "30m"})
    until(lambda: sluiced.jobs(space).get("wide", {}).get("promised"))
    gang("fills", 1, {"duration": "5m"})
    until(lambda: len(placed("fills")) == 1)
    said = until(lambda: (t := sluice("why", "wide")) and "fills" in t and t)
    (line,) = [line for line in said.splitlines() if "fills" in line and "passed by" in line]
    assert "delay 0s" in line, said
    module_cluster.admin.delete("pods", "fills-0", space, grace=0)
    until(lambda: "with 1 slot: it would start now" in sluice("why", "wide"))
    module_cluster.admin.delete_all("pods", space, labels="scheduling.x-k8s.io/pod-group=wide", grace=0)
    until(lambda: "wide" not in sluiced.jobs(space))
    gang("thin", 1, {"duration": "30m"})
    until(lambda: len(placed("thin")) == 1)


def test_after_labels_and_kinds(module_cluster, sluiced, gang, placed, space):
    """All groups with a label, and a Job by its kind, wherever their pods are in the queue."""
    gang("a", 1, run=2, labels={"stage": "prep"})
    gang("b", 1, run=5, labels={"stage": "prep"})
    module_cluster.admin.create(work.job("load", 1, namespace=space, cpu=4, run=2, scheduler="sluice"))
    gang("next", 1, {"after": "ok:stage=prep,ok:job/load"})
    until(lambda: len(placed("a")) == len(placed("b")) == 1)
    assert not placed("next")
    until(lambda: len(placed("next")) == 1, 40)
    ended = {p["metadata"]["name"]: p["status"]["phase"] for p in module_cluster.admin.list("pods", space)}
    assert ended["a-0"] == ended["b-0"] == "Succeeded" and any(n.startswith("load-") and s == "Succeeded" for n, s in ended.items())


def test_estimates_beyond_the_plan(module_cluster, sluiced, gang, placed, space):
    """Every waiting gang has an estimate, in order, although only the first is promised a start."""
    gang("runs", 4, {"duration": "10m"})
    until(lambda: len(placed("runs")) == 4)
    for i in range(12):
        gang(f"w{i:02d}", 4, {"duration": "10m"})
    jobs = lambda: {n: j for n, j in sluiced.jobs(space).items() if n.startswith("w")}  # noqa: E731
    until(lambda: len(jobs()) == 12 and all(j.get("estimate") for j in jobs().values()), 40, "all are told a start")
    starts = [seconds(j["estimate"]) for _, j in sorted(jobs().items())]
    assert all(abs(b - a - 600) <= 2 for a, b in zip(starts, starts[1:], strict=False)), starts
    assert sum(bool(j.get("promised")) for j in jobs().values()) == 1


def test_priority_class(module_cluster, sluiced, gang, placed, space):
    admin = module_cluster.admin
    admin.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "plan-urgent"}, "value": 1000})
    gang("runs", 4, {"duration": "10m"})
    until(lambda: len(placed("runs")) == 4)
    gang("first", 4, {"duration": "10m"})
    gang("usual", 4, {"duration": "10m"})
    until(lambda: sluiced.jobs(space).get("usual", {}).get("position") == 2)
    gang("urgent", 4, {"duration": "10m"}, priorityClassName="plan-urgent")
    jobs = lambda: sluiced.jobs(space)  # noqa: E731
    until(lambda: jobs().get("urgent", {}).get("priority") == 1000 and jobs()["urgent"]["position"] < jobs()["usual"]["position"])
    assert jobs()["first"]["promised"], "a promise that was given stays"

"""Every key of sluice.sh/, preferences, statuses of waiting work, settings changed at run time: with real objects."""

import json
import subprocess
import time
from datetime import datetime, timezone

import pytest
import yaml

from cluster import work

from .conftest import crds, until
from .daemon import Sluiced, program

ZONE = "topology.kubernetes.io/zone"
CLUSTER = {
    "node_list": [
        {"name": "control-plane", "control-plane": True, "cpu": 16},
        {"name": "node", "count": 6, "cpu": 4, "memory": "16Gi", "per": {"rack": 2, "zone": 4}},
        {"name": "night", "count": 1, "cpu": 4, "labels": {"pool": "night"}},
    ]
}
SETTINGS = {
    "status": {"interval": "1s", "audit": "2s"},
    "jobs": {"holdVacant": "2s"},
    "queues": [{"name": "default"}, {"name": "night", "nodeLabel": "pool=night"}, {"name": "one", "maxRunning": 1}],
}


@pytest.fixture(scope="module")
def sluiced(module_cluster):
    crds(module_cluster)
    with Sluiced(module_cluster, SETTINGS) as d:
        yield d
        assert d.process.poll() is None, d.tail(40)
        for line in d.log.read_text().splitlines():
            assert "plan and cluster disagree" not in line and "mirror and cluster disagree" not in line and "cycle failed" not in line


@pytest.fixture
def pods(module_cluster, space):
    def run(prefix=""):
        found = module_cluster.admin.list("pods", space)
        return {p["metadata"]["name"]: p for p in found if p["metadata"]["name"].startswith(prefix)}

    return run


@pytest.fixture
def placed(pods):
    return lambda prefix="": {n: p["spec"]["nodeName"] for n, p in pods(prefix).items() if p["spec"].get("nodeName")}


@pytest.fixture
def pod(module_cluster, space):
    """pod(name, **keys of sluice.sh/ with _ for -): made in the test's namespace."""

    def run(name, keys=None, **more):
        notes = {f"sluice.sh/{k}": str(v) for k, v in (keys or {}).items()}
        return module_cluster.admin.create(
            work.pod(name, **{"namespace": space, "run": 600, "scheduler": "sluice", "annotations": notes, **more})
        )

    return run


@pytest.fixture
def gang(module_cluster, space):
    def run(name, size, keys=None, pods=None, **more):
        notes = {f"sluice.sh/{k}": str(v) for k, v in (keys or {}).items()}
        for p in work.gang(name, size, pods, **{"namespace": space, "run": 600, "scheduler": "sluice", "annotations": notes, **more}):
            module_cluster.admin.create(p)

    return run


@pytest.fixture
def events(module_cluster, space):
    def run(name, reason="FailedScheduling"):
        return [e["message"] for e in module_cluster.admin.list("events", space)
                if e["reason"] == reason and e["involvedObject"]["name"] == name]  # fmt: skip

    return run


def stays(test, seconds=1.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert test()
        time.sleep(0.1)


# -- the keys ---------------------------------------------------------------------------------------


def test_queue(sluiced, pod, placed, events, space):
    pod("late", {"queue": "night"})
    until(lambda: placed().get("late") == "night-0" or placed().get("late", "").startswith("night"))
    assert sluiced.jobs(space)["late"]["queue"] == "night"
    pod("a", {"queue": "one"})
    until(lambda: placed("a"))
    pod("b", {"queue": "one"})
    stays(lambda: not placed("b"))
    pod("lost", {"queue": "nowhere"})
    until(lambda: any("nowhere" in m for m in events("lost")), message="the queue is named")
    assert not placed("lost")


def test_duration_and_begin(sluiced, pod, placed, space):
    at = datetime.fromtimestamp(int(time.time()) + 5, timezone.utc)
    pod("soon", {"begin": at.strftime("%Y-%m-%dT%H:%M:%SZ"), "duration": "15m"})
    assert until(lambda: sluiced.jobs(space)["soon"])["limitSeconds"] == 900
    until(lambda: placed("soon"))
    assert time.time() >= at.timestamp()


def test_after(sluiced, module_cluster, pod, gang, placed, space):
    pod("third", {"after": "ok:second"})
    pod("second", {"after": "first"}, run=1)
    until(lambda: "first" in sluiced.jobs(space).get("second", {}).get("reason", ""))
    assert sluiced.jobs(space)["second"]["state"] == "blocked"
    pod("first")
    until(lambda: placed("first"))
    stays(lambda: not placed("second") and not placed("third"), 1)
    module_cluster.admin.patch("pods", "first", {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}}, space)
    until(lambda: placed("second"))
    until(lambda: placed("third"))
    # over, as its Job says: also for one that comes much later
    module_cluster.admin.create(work.job("bad", pods=1, namespace=space, run=0, scheduler="sluice", annotations={"sluice.test/exit-code": "1"}))
    until(lambda: any(c["type"] == "Failed" for c in module_cluster.admin.get("jobs", "bad", space)["status"].get("conditions", [])))
    pod("cleanup", {"after": "failed:bad"})
    pod("never", {"after": "ok:bad"})
    until(lambda: placed("cleanup"))
    until(lambda: "but it has failed" in sluiced.jobs(space).get("never", {}).get("reason", ""))


def test_after_kinds_and_labels(sluiced, module_cluster, pod, placed, events, space):
    """A group waits for objects of a kind, and for all groups with a label, whatever makes their pods."""
    admin = module_cluster.admin

    def finished(name):
        return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in admin.get("jobs", name, space)["status"].get("conditions", []))

    template = work.pod("x", cpu=1, run=600, scheduler="sluice", labels={"app": "db"})
    admin.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "db", "namespace": space},
                  "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "db"}},
                           "template": {"metadata": {k: v for k, v in template["metadata"].items() if k in ("labels", "annotations")}, "spec": template["spec"] | {"restartPolicy": "Always"}}}})  # fmt: skip
    pod("use", {"after": "start:deployment/db,start:app=db"})
    until(lambda: placed("use"), message="it starts after the Deployment")
    for i in (1, 2):
        admin.create(work.job(f"prep-{i}", pods=1, namespace=space, labels={"stage": "prep"}, run=600, scheduler="sluice"))
    until(lambda: len(placed("prep")) == 2)
    pod("next", {"after": "ok:stage=prep"})
    pod("one", {"after": "job/prep-1"})
    pod("wrong", {"after": "cronjob/prep"})
    until(lambda: "(stage=prep) to succeed" in sluiced.jobs(space).get("next", {}).get("reason", ""))
    until(lambda: any("cronjob/prep" in m for m in events("wrong")), message="a kind that there is not")
    ending = [p["metadata"]["name"] for p in admin.list("pods", space) if p["metadata"]["name"].startswith("prep-")]
    for name in sorted(ending)[:1]:
        admin.patch("pods", name, {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}}, space)
    until(lambda: finished("prep-1"))
    until(lambda: placed("one"))
    assert not placed("next")
    for name in sorted(ending)[1:]:
        admin.patch("pods", name, {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}}, space)
    until(lambda: placed("next"), message="the last one with the label has succeeded")
    assert not placed("wrong")


def test_exclusive(sluiced, pod, placed):
    pod("alone", {"exclusive": "true"}, cpu=1)
    until(lambda: placed("alone"))
    for i in range(6):
        pod(f"small-{i}", cpu=1)
    until(lambda: len(placed("small")) == 6)
    assert placed("alone")["alone"] not in placed("small").values()


def test_min_and_max_size(sluiced, module_cluster, gang, placed, space):
    # nodes of 4 cpus, 7 of them: at least 2 of 3 cpus each, never more than 4, of 6
    for p in work.gang("el", 2, pods=6, cpu=3, namespace=space, run=600, scheduler="sluice"):
        p["metadata"]["labels"] = {"sluice.sh/group": "el", "sluice.sh/min-size": "2", "sluice.sh/max-size": "4"}
        module_cluster.admin.create(p)
    until(lambda: len(placed("el")) == 4)
    stays(lambda: len(placed("el")) == 4, 1.5)
    assert sluiced.jobs(space)["el"]["minSize"] == 2


def racks(cluster, level="topology.sluice.sh/rack"):
    return {n["metadata"]["name"]: n["metadata"]["labels"].get(level) for n in cluster.admin.list("nodes")}


def test_topology(sluiced, module_cluster, gang, placed, events, space):
    where = racks(module_cluster)
    gang("near", 2, {"topology": "required:rack"}, cpu=3)
    until(lambda: len(placed("near")) == 2)
    assert len({where[n] for n in placed("near").values()}) == 1
    gang("rather", 3, {"topology": "preferred:rack"}, cpu=3)
    until(lambda: len(placed("rather")) == 3, message="no rack has three: it starts all the same")
    gang("must", 3, {"topology": "rack"}, cpu=4)
    until(lambda: sluiced.jobs(space).get("must", {}).get("state") == "never")
    until(lambda: any("rack" in m for m in events("must-0")), message="the level is named")
    module_cluster.admin.delete_all("pods", space, grace=0)
    until(lambda: not placed())
    gang("zone", 3, {"topology": "required:zone"}, cpu=3)
    until(lambda: len(placed("zone")) == 3)
    zones = racks(module_cluster, ZONE)
    assert len({zones[n] for n in placed("zone").values()}) == 1


# -- wishes that break ties -------------------------------------------------------------------------


def test_preferences(sluiced, module_cluster, pod, placed):
    admin = module_cluster.admin
    last = sorted(n for n in sluiced.nodes() if n.startswith("node"))[-1]
    first = sorted(n for n in sluiced.nodes() if n.startswith("node"))[0]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [last]}]}
    if "kubernetes.io/hostname" not in admin.get("nodes", last, None)["metadata"]["labels"]:
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [last]}]}
    likes = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "preference": term}]}}
    pod("likes", affinity=likes)
    until(lambda: placed("likes"))
    assert placed("likes")["likes"] == last
    for i in range(2):  # preferred, not required: full is full
        pod(f"full-{i}", cpu=3, affinity=likes)
    until(lambda: len(placed("full")) == 2)
    assert last in placed("full").values() and set(placed("full").values()) != {last}
    module_cluster.taint_node(first, "slow=true:PreferNoSchedule")
    try:
        # One watch tells of both: where this one is placed, the taint is known too.
        module_cluster.label_node(first, {"known": "yes"})
        pod("patient", tolerations=[{"key": "slow", "operator": "Exists"}], nodeSelector={"known": "yes"})
        until(lambda: placed("patient"))
        pod("fast")
        until(lambda: placed("fast"))
        assert placed("fast")["fast"] != first
    finally:
        module_cluster.taint_node(first)
        module_cluster.label_node(first, {"known": None})


# -- nodes ------------------------------------------------------------------------------------------


def test_nodes_follow_the_cluster(sluiced, module_cluster, pod, placed, events, space):
    names = sorted(n for n in sluiced.nodes())
    assert "control-plane" not in names, "left out unless asked for"
    pod("picky", nodeSelector={"disk": "ssd"})
    until(lambda: sluiced.jobs(space).get("picky", {}).get("state") == "never")
    until(lambda: any("no node has disk=ssd" in m for m in events("picky")), message="what speaks against every node is named")
    module_cluster.label_node(names[2], {"disk": "ssd"})
    try:
        until(lambda: placed("picky"))
        assert placed("picky")["picky"] == names[2]
    finally:
        module_cluster.label_node(names[2], {"disk": None})
    for n in names:
        module_cluster.set_ready(n, False)
    try:
        until(lambda: all(n["state"] == "down" for n in sluiced.nodes().values()))
        pod("waits")
        stays(lambda: not placed("waits"))
        module_cluster.set_ready(names[3])
        module_cluster.taint_node(names[3])
        until(lambda: placed("waits"))
        assert placed("waits")["waits"] == names[3]
    finally:
        for n in names:
            module_cluster.set_ready(n)
            module_cluster.taint_node(n)
    until(lambda: all(n["state"] == "up" for n in sluiced.nodes().values()))


def test_busy_port(sluiced, module_cluster, pod, placed, pods, space):
    ports = [{"name": "main", "image": "simulated", "ports": [{"containerPort": 80, "hostPort": 18099}]}]
    others = sorted(n for n in sluiced.nodes())
    for i, node in enumerate(others):
        pod(f"other-{i}", scheduler=None, node=node, containers=ports, activeDeadlineSeconds=3000, run=3000)
    until(lambda: len(placed("other")) == len(others))
    pod("mine", containers=ports)
    job = until(lambda: (j := sluiced.jobs(space)["mine"]) and "18099" in j["reason"] and j.get("estimate") and j, message="busy is not never")
    assert job["state"] == "waiting"
    module_cluster.admin.delete("pods", "other-1", space, grace=0)
    until(lambda: placed("mine"))
    assert placed("mine")["mine"] == others[1]


# -- what is told -----------------------------------------------------------------------------------


def test_waiting_is_told(sluiced, module_cluster, gang, placed, pods, events, space):
    gang("first", 7, cpu=4, run=3000, activeDeadlineSeconds=3000)
    until(lambda: len(placed("first")) == 7)
    module_cluster.admin.create({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
                                 "metadata": {"name": "second", "namespace": space}, "spec": {"minMember": 2}})  # fmt: skip
    gang("second", 2, cpu=4, run=1)
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{space}/podgroups/second"

    def podgroup():
        return module_cluster.admin.request("GET", path)

    notes = until(lambda: (a := podgroup()["metadata"]["annotations"]) and a["sluice.sh/start-estimate"] and a)
    estimate = datetime.fromisoformat(notes["sluice.sh/start-estimate"].replace("Z", "+00:00")).timestamp()
    assert 2000 < estimate - time.time() < 3010, "when the first one's deadline ends"
    assert notes["sluice.sh/position"] == "1" and "cpu" in notes["sluice.sh/reason"]
    until(lambda: podgroup()["status"]["phase"] == "Scheduling")
    for p in until(lambda: [p for p in pods("second").values() if work.condition(p, "PodScheduled")] if len(pods("second")) == 2 else []):
        c = work.condition(p, "PodScheduled")
        assert c["status"] == "False" and c["reason"] == "Unschedulable" and c["message"]
    told = until(lambda: [e for e in module_cluster.admin.list("events", space) if e["reason"] == "FailedScheduling"])
    assert all(e["reportingComponent"] == "sluice" and e["reportingInstance"].startswith("sluice-") for e in told)
    # the plan moves: so does what is told
    for i in range(2):
        module_cluster.admin.patch("pods", f"first-{i}", {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}}, space)
    until(lambda: len(placed("second")) == 2)
    until(lambda: podgroup()["status"].get("phase") in ("Running", "Finished"))
    until(lambda: (s := podgroup()["status"])["phase"] == "Finished" and s["succeeded"] == 2)
    scheduled = until(lambda: [e for e in module_cluster.admin.list("events", space)
                               if e["reason"] == "Scheduled" and e["involvedObject"]["name"] == "second-0"])  # fmt: skip
    assert scheduled[0]["reportingComponent"] == "sluice"


BAD = {
    "size-word": ({"annotations": {"sluice.sh/size": "many"}}, "many"),
    "size-minus": ({"annotations": {"sluice.sh/size": "-3"}}, "-3"),
    "size-absurd": ({"annotations": {"sluice.sh/size": "99999999999999999999"}}, "99999999999999999999"),
    "topology": ({"annotations": {"sluice.sh/topology": "moon"}}, "moon"),
    "both-ways": ({"annotations": {"sluice.sh/min-size": "9", "sluice.sh/max-size": "2"}}, "min-size"),
    "duration": ({"annotations": {"sluice.sh/duration": "soon"}}, "soon"),
    "begin": ({"annotations": {"sluice.sh/begin": "tomorrow"}}, "tomorrow"),
    "exclusive": ({"annotations": {"sluice.sh/exclusive": "perhaps"}}, "perhaps"),
    "after": ({"annotations": {"sluice.sh/after": ",".join("abcdefghijklmnopqrstuvwxyz")}}, "after"),
    "quotes": ({"annotations": {"sluice.sh/queue": "'; DROP TABLE jobs;-- \"\u2603\U0001f600"}}, "\u2603"),
    "long": ({"annotations": {"sluice.sh/queue": "q" * 100000}}, "queue"),
    "amount": ({"memory": "8000Pi"}, "memory"),
    "cpu": ({"cpu": "9000000000000"}, "cpu"),
}


def test_bad_objects(sluiced, pod, placed, events):
    """Each wrong key is named in an event of its own; none of them keeps a correct group from starting."""
    for name, (spec, _) in BAD.items():
        pod(name, **spec)
    pod("good", cpu=1)
    until(lambda: placed("good"), message="it hurts nobody else")
    for name, (_, word) in BAD.items():
        until(lambda n=name, w=word: any(w in m for m in events(n)), message=f"{name}: an event that names {word!r}: {events(name)}")
    assert list(placed()) == ["good"]


def test_groups_that_contradict(sluiced, module_cluster, placed, events, space):
    for i, size in enumerate((2, 3)):
        p = work.gang("crew", size, pods=1, namespace=space, run=600, scheduler="sluice")[0]
        p["metadata"]["name"] = f"crew-{i}"
        module_cluster.admin.create(p)
    until(lambda: events("crew-1", "BadGroup") or events("crew-0", "BadGroup"))
    stays(lambda: not placed("crew"))


# -- bindings that can never succeed -----------------------------------------------------------------


@pytest.fixture
def refuse(module_cluster):
    """refuse(expression): the API server refuses bindings for which it does not hold."""
    admin = module_cluster.admin

    def run(space, expression):
        api = "admissionregistration.k8s.io/v1"
        admin.create({
            "apiVersion": api, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "refuse"},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space}},
                    "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}],
                },
                "validations": [{"expression": expression, "message": "not on this one"}],
            },
        })  # fmt: skip
        admin.create({"apiVersion": api, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "refuse"},
                      "spec": {"policyName": "refuse", "validationActions": ["Deny"]}})  # fmt: skip
        # it takes a moment until it is in force
        probe = work.pod("probe", namespace=space, scheduler="nobody", cpu=0)

        def in_force():
            admin.create(probe)
            try:
                admin.bind("probe", module_cluster.refused_node, space)
            except Exception as e:
                return "not on this one" in str(e)
            finally:
                admin.delete("pods", "probe", space, grace=0, missing_ok=True)
            return False

        until(in_force, message="the policy is in force")

    yield run
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        admin.delete(kind, "refuse", None, missing_ok=True)


def copies(name, space, **more):
    """A ReplicaSet of three: its controller makes a pod again at once."""
    p = work.pod(name, namespace=space, run=300, scheduler="sluice", labels={"app": name}, restart="Always", **more)
    p["metadata"].pop("name")
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name, "namespace": space},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": p["metadata"], "spec": p["spec"]}}}  # fmt: skip


def test_half_bound_gang_is_taken_back(sluiced, module_cluster, refuse, placed, pods, events, space):
    """One of three nodes refuses: Sluice evicts the bound pods, and the whole gang starts elsewhere."""
    bad = sorted(n for n in sluiced.nodes() if n.startswith("node"))[1]
    module_cluster.refused_node = bad
    refuse(space, f"object.target.name != '{bad}'")
    before = sluiced.metrics()["sluice_gangs_taken_back_total"]
    module_cluster.admin.create(copies("whole", space, cpu=3))
    until(lambda: sluiced.metrics()["sluice_gangs_taken_back_total"] > before)

    def alive():
        return {n: p["spec"].get("nodeName") for n, p in pods("whole").items()
                if p["status"].get("phase") in ("Pending", "Running") and "deletionTimestamp" not in p["metadata"]}  # fmt: skip

    until(lambda: len([n for n in alive().values() if n]) == 3, message="the gang starts as a whole")
    assert bad not in alive().values()
    assert any("not on this one" in e["message"] for e in module_cluster.admin.list("events", space) if e["reason"] == "FailedScheduling")


def test_half_bound_pods_without_controller(sluiced, module_cluster, refuse, gang, placed, space):
    """No controller would make these pods again: none is evicted, and the rest goes to a node that takes it."""
    bad = sorted(n for n in sluiced.nodes() if n.startswith("node"))[1]
    module_cluster.refused_node = bad
    refuse(space, f"object.target.name != '{bad}'")
    gang("bare", 3, cpu=3)
    until(lambda: len(placed("bare")) == 3)
    assert bad not in placed("bare").values()


# -- members that fail, settings that change ----------------------------------------------------------


def config(sluiced, *args):
    p = subprocess.run([program("sluice"), "config", "-s", f"unix:{sluiced.socket}", *args], capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return p.stdout


def in_force(sluiced):
    return json.loads(config(sluiced, "-o", "json"))


def change(sluiced, section, **values):
    """Rewrite the settings; returns when the daemon has read them."""
    settings = yaml.safe_load(sluiced.config.read_text())
    settings.setdefault(section, {}).update(values)
    sluiced.config.write_text(yaml.safe_dump(settings))
    until(lambda: values.items() <= in_force(sluiced)[section].items(), message="reloaded by itself")


def member_fails(module_cluster, space, name):
    """The set's running pods, after one of them was made to fail."""
    admin = module_cluster.admin

    def running():
        return {p["metadata"]["uid"]: p for p in admin.list("pods", space, labels=f"app={name}")
                if p["spec"].get("nodeName") and p["status"].get("phase") == "Running"}  # fmt: skip

    admin.create(copies(name, space, cpu=2))
    first = until(lambda: len(r := running()) == 3 and r)
    victim = sorted(first.values(), key=lambda p: p["metadata"]["name"])[0]
    admin.patch("pods", victim["metadata"]["name"], {"status": {"phase": "Failed", "reason": "Error"}}, space, "strategic", "status")
    return set(first), victim["metadata"]["uid"], running


def test_member_failure_and_reload(sluiced, module_cluster, space):
    first, victim, running = member_fails(module_cluster, space, "replace")
    now = until(lambda: len(r := set(running())) == 3 and victim not in r and r)
    assert len(first & now) == 2, "the others run on"
    assert "jobs.onMemberFailure" in config(sluiced) and in_force(sluiced)["jobs"]["onMemberFailure"] == "replace"
    change(sluiced, "jobs", onMemberFailure="restart")
    try:
        first, victim, running = member_fails(module_cluster, space, "restart")
        until(lambda: len(r := set(running())) == 3 and not first & r, message="the whole gang starts again")
    finally:
        change(sluiced, "jobs", onMemberFailure="replace")


def test_bad_settings_are_refused_with_their_line(sluiced):
    good = sluiced.config.read_text()
    sluiced.config.write_text("jobs:\n  maxSize: 10\n  onMemberFailure: shrug\n")
    until(lambda: "configuration rejected" in sluiced.log.read_text())
    line = [x for x in sluiced.log.read_text().splitlines() if "configuration rejected" in x][-1]
    assert "sluiced.yaml:3: jobs.onMemberFailure: expected one of replace, restart" in line
    assert in_force(sluiced)["jobs"]["maxSize"] == 100000, "the old ones stand"
    sluiced.config.write_text(yaml.safe_dump({**yaml.safe_load(good), "nodes": {"excludeLabel": "example.com/out"}}))
    until(lambda: any("configuration reloaded" in x and "nodes.excludeLabel" in x for x in sluiced.log.read_text().splitlines()),
          message="what needs a restart is named")  # fmt: skip
    sluiced.config.write_text(good)
    assert sluiced.process.poll() is None


def test_deadlines_enforced_when_told(sluiced, module_cluster, pod, placed, pods, events, space):
    pod("slow", {"duration": "2s"})
    until(lambda: placed("slow"))
    time.sleep(4)
    assert pods()["slow"]["status"]["phase"] == "Running", "a duration alone ends nothing"
    change(sluiced, "jobs", enforceDeadlines=True)
    try:
        until(lambda: pods().get("slow", {"status": {"phase": "Failed"}})["status"]["phase"] == "Failed")
        until(lambda: events("slow", "DeadlineExceeded"))
    finally:
        change(sluiced, "jobs", enforceDeadlines=False)


def test_metrics_and_log(sluiced, module_cluster, gang, placed, space):
    before = sluiced.metrics()
    gang("counted", 2)
    until(lambda: len(placed("counted")) == 2)
    until(lambda: sluiced.metrics()["sluice_pods_bound_total"] >= before["sluice_pods_bound_total"] + 2)
    until(lambda: sluiced.metrics()["sluice_gangs_started_total"] >= before["sluice_gangs_started_total"] + 1)
    until(lambda: sluiced.metrics()["sluice_audit_lists_total"] > before["sluice_audit_lists_total"], message="a fresh list is looked at")
    assert sluiced.metrics()["sluice_audit_differences_total"] == 0
    until(lambda: [x for x in sluiced.log.read_text().splitlines() if "gang decided" in x and "job=counted" in x and f"ns={space}" in x])


def test_json_log_and_stop(module_cluster, tmp_path):
    with Sluiced(module_cluster, {"log": {"format": "json"}, "nodes": {"controlPlane": True}}, folder=tmp_path) as d:
        assert "control-plane" in d.nodes(), "asked for"
        assert d.stop() == 0, "told to stop, it stops well"
        lines = [json.loads(x) for x in d.log.read_text().splitlines()]
    assert lines[-1]["msg"] == "stopped" and all({"time", "level", "msg"} <= set(x) for x in lines)

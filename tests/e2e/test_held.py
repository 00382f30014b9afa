"""Work held on admission, on a real API server with the default scheduler: gates, suspended Jobs, release to planned
nodes, every kind of owner, and a webhook that misbehaves."""

import base64
import copy
import http.server
import itertools
import json
import os
import ssl
import subprocess
import threading
import time

import pytest
import yaml

from cluster import work

from .conftest import EXAMPLES, crds, until, with_examples
from .daemon import program
from .drain import hooked

CLUSTER = {"node_list": [{"name": "node", "count": 6, "cpu": 4, "per": {"zone": 1}}]}
GATE = "fluxqueue"
_spaces = itertools.count(1)


@pytest.fixture(scope="module")
def held(module_cluster):
    """A daemon whose webhook the API server calls."""
    crds(module_cluster)
    with hooked(module_cluster, held={"refusedFor": "3s"}) as d:
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


@pytest.fixture
def door(module_cluster):
    """door("true"): a fresh namespace with that value of sluice.sh/hold."""
    made = []

    def make(mode="true"):
        name = f"h{next(_spaces)}-{os.getpid()}"
        module_cluster.namespace(name, labels={"sluice.sh/hold": mode} if mode else None)
        made.append(name)
        return name

    yield make
    for name in made:
        for kind in ("cronjobs", "jobs", "deployments", "replicasets", "statefulsets"):
            for obj in module_cluster.admin.list(kind, name):
                module_cluster.admin.delete(kind, obj["metadata"]["name"], name, propagation="Background", missing_ok=True)
        module_cluster.admin.delete_all("pods", name, grace=0)
        module_cluster.admin.delete("namespaces", name, None)


def pods(cluster, space, **labels):
    return [
        p for p in cluster.admin.list("pods", space)
        if all(p["metadata"].get("labels", {}).get(k) == v for k, v in labels.items())
    ]  # fmt: skip


def check_released(p, scheduler="default-scheduler"):
    """Check that a pod was released correctly: pinned, labelled, without our gate, on its node and no other."""
    meta, spec = p["metadata"], p["spec"]
    node = meta["labels"]["sluice.sh/node"]
    assert GATE not in [g["name"] for g in spec.get("schedulingGates", [])]
    assert spec["schedulerName"] == scheduler
    assert meta["labels"]["fluxqueue/jobid"].isdigit()
    assert node in meta["annotations"]["sluice.sh/nodes"].split(",")
    if scheduler != "default-scheduler":  # Sluice binds it: a pin could not be taken off again
        assert "nodeAffinity" not in spec.get("affinity", {})
        assert spec.get("nodeName") in (None, node), "the pod runs elsewhere"
        return node
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for term in terms:
        assert {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]} in term["matchExpressions"]
    assert spec.get("nodeName") in (None, node), "the pod runs elsewhere"
    return node


def running(cluster, space, count, timeout=20, **labels):
    """Wait until this many pods run; each must have been released."""

    def look():
        found = [p for p in pods(cluster, space, **labels) if p["status"].get("phase") == "Running"]
        return (found,) if len(found) == count else None

    try:
        return until(look, timeout, f"{count} pods of {space} running")[0]
    except TimeoutError as e:
        seen = [
            (p["metadata"]["name"], p["status"].get("phase"), p["spec"].get("schedulingGates"), p["spec"].get("nodeName"),
             p["metadata"]["annotations"].get("sluice.sh/node"), p["status"].get("conditions", [{}])[0].get("message"))
            for p in pods(cluster, space) if p["status"].get("phase") != "Running"
        ][:5]  # fmt: skip
        raise TimeoutError(f"{e}: {seen}") from None


def test_pod_is_held_and_released(held, module_cluster, door):
    space = door()
    made = module_cluster.admin.create(work.pod("one", cpu=1, namespace=space, run=60))
    assert [g["name"] for g in made["spec"]["schedulingGates"]] == [GATE]
    assert made["spec"]["schedulerName"] == "default-scheduler"
    (p,) = running(module_cluster, space, 1)
    check_released(p)


def test_job_is_suspended_and_each_pod_gets_its_place(held, module_cluster, door):
    space = door()
    made = module_cluster.admin.create(work.job("two", pods=4, namespace=space, cpu=2, run=60, indexed=True))
    assert made["spec"]["suspend"] is True
    found = running(module_cluster, space, 4)
    nodes = [check_released(p) for p in found]
    assert len(set(nodes)) == 2, "two pods of 2 cpu on each node of 4"


# ---- every kind ----


def deployment(name, space, replicas, kind="Deployment", cpu=1, labels=None, **spec):
    inner = work.pod(name, cpu=cpu, labels={"app": name, **(labels or {})}, restart="Always", run=600)
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": space},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": inner["metadata"]["labels"], "annotations": inner["metadata"]["annotations"]},
                "spec": inner["spec"],
            },
            **({"serviceName": name} if kind == "StatefulSet" else {}),
            **spec,
        },
    }


def scale(cluster, kind, name, space, replicas):
    cluster.admin.patch(kind, name, {"spec": {"replicas": replicas}}, namespace=space)


def clean(held, cluster, space):
    """Delete everything in the namespace; the daemon must then forget its jobs."""
    for kind in ("cronjobs", "jobs", "deployments", "replicasets", "statefulsets"):
        for obj in cluster.admin.list(kind, space):
            cluster.admin.delete(kind, obj["metadata"]["name"], space, propagation="Background", missing_ok=True)
    for p in pods(cluster, space):
        if not p["metadata"].get("ownerReferences"):
            cluster.admin.delete("pods", p["metadata"]["name"], space, grace=0, missing_ok=True)
    until(lambda: not pods(cluster, space), 90, "pods gone")
    until(lambda: not held.jobs(space), 20, "jobs forgotten")


@pytest.mark.parametrize("kind", ["deployments", "replicasets", "statefulsets"])
def test_scale(held, module_cluster, door, kind):
    """A Deployment is scaled up, down, to zero and back: new pods are held and get their own places."""
    space = door()
    name = {"deployments": "Deployment", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet"}[kind]
    made = module_cluster.admin.create(deployment("web", space, 2, kind=name))
    assert made["spec"]["template"]["spec"]["schedulingGates"] == [{"name": GATE}]
    for count in (2, 4, 1, 0, 3):
        scale(module_cluster, kind, "web", space, count)
        until(lambda: len(pods(module_cluster, space)) == count, 20, f"{count} pods")  # noqa: B023
        for p in running(module_cluster, space, count):
            check_released(p)
    clean(held, module_cluster, space)


def test_statefulset_in_parallel(held, module_cluster, door):
    space = door()
    module_cluster.admin.create(deployment("db", space, 3, kind="StatefulSet", podManagementPolicy="Parallel"))
    for p in running(module_cluster, space, 3):
        check_released(p)


def test_rolling_update(held, module_cluster, door):
    space = door()
    admin = module_cluster.admin
    admin.create(deployment("roll", space, 3))
    before = {p["metadata"]["name"] for p in running(module_cluster, space, 3)}
    admin.patch("deployments", "roll", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}}, namespace=space)
    until(lambda: len(pods(module_cluster, space, v="2")) == 3 == len(pods(module_cluster, space)), 40, "rolled")
    for p in running(module_cluster, space, 3, v="2"):
        check_released(p)
        assert p["metadata"]["name"] not in before
    clean(held, module_cluster, space)


def test_job_in_waves(held, module_cluster, door):
    """A Job with more completions than parallelism: a pod that replaces a finished one takes its place."""
    space = door()
    module_cluster.admin.create(work.job("waves", pods=2, completions=6, namespace=space, cpu=1, run=1))
    job = until(
        lambda: (lambda j: j if j["status"].get("succeeded") == 6 else None)(module_cluster.admin.get("jobs", "waves", space)),
        40, "six successes",
    )  # fmt: skip
    assert job["metadata"]["annotations"]["sluice.sh/held"] == "released"
    for p in pods(module_cluster, space):
        check_released(p)
    clean(held, module_cluster, space)


@pytest.fixture
def full(held, module_cluster, door):
    """Fills the whole cluster; call the result to make room."""
    space = door(None)
    names = [f"block-{i}" for i in range(6)]
    for name in names:
        module_cluster.admin.create(work.pod(name, cpu=4, namespace=space, run=3600))
    until(lambda: sum(bool(p["spec"].get("nodeName")) for p in pods(module_cluster, space)) == 6, 20, "full")

    def room(count=6):
        for name in names[:count]:
            module_cluster.admin.delete("pods", name, space, grace=0, missing_ok=True)
        del names[:count]

    yield room
    room()


def mark(admin, space, name):
    return admin.get("jobs", name, space)["metadata"].get("annotations", {}).get("sluice.sh/held")


def state(held, space, name):
    return held.jobs(space).get(name, {}).get("state")


def test_parallelism_changes_while_held(held, module_cluster, door, full):
    space = door()
    admin = module_cluster.admin
    admin.create(work.job("grows", pods=2, namespace=space, cpu=2, run=60))
    until(lambda: state(held, space, "grows") == "waiting", 20, "queued")
    until(lambda: len(pods(module_cluster, space)) == 2, 20, "it is the next: its pods are made ahead")
    assert mark(admin, space, "grows") == "yes", "its turn has not come"
    admin.patch("jobs", "grows", {"spec": {"parallelism": 3}}, namespace=space)
    admin.patch("jobs", "grows", {"spec": {"parallelism": 1}}, namespace=space)
    until(lambda: (j := held.jobs(space)["grows"])["size"] == 1 and j["position"] == 1, message="the plan follows")
    assert all(p["spec"]["schedulingGates"] == [{"name": GATE}] for p in pods(module_cluster, space))
    full()
    (p,) = running(module_cluster, space, 1)
    check_released(p)


def test_job_its_user_suspended(held, module_cluster, door):
    """Sluice does not resume a Job that its user created suspended; once the user resumes it, its pods are held and
    placed."""
    space = door()
    admin = module_cluster.admin
    job = work.job("mine", pods=2, namespace=space, cpu=1, run=60)
    job["spec"]["suspend"] = True
    assert admin.create(job)["metadata"]["annotations"]["sluice.sh/held"] == "user"
    time.sleep(1.5)
    assert admin.get("jobs", "mine", space)["spec"]["suspend"] is True
    assert not pods(module_cluster, space)
    admin.patch("jobs", "mine", {"spec": {"suspend": False}}, namespace=space)
    for p in running(module_cluster, space, 2):
        check_released(p)
    admin.patch("jobs", "mine", {"spec": {"suspend": True}}, namespace=space)
    until(lambda: not pods(module_cluster, space), 20, "suspended again")
    time.sleep(1)
    assert admin.get("jobs", "mine", space)["spec"]["suspend"] is True
    clean(held, module_cluster, space)


def test_cronjob(held, module_cluster, door):
    space = door()
    job = work.job("tick", pods=2, namespace=space, cpu=1, run=60)
    module_cluster.admin.create({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": space},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job["spec"]}, "suspend": True},
    })  # fmt: skip
    owner = module_cluster.admin.get("cronjobs", "tick", space)
    job["metadata"]["ownerReferences"] = [reference(owner)]
    assert module_cluster.admin.create(job)["spec"]["suspend"] is True
    for p in running(module_cluster, space, 2):
        check_released(p)


def reference(owner):
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"],
            "controller": True, "blockOwnerDeletion": False}  # fmt: skip


def simulated(cluster, space, name):
    """Make an object in place of a controller's (JobSet, MPIJob, ...); the objects that the controller would make
    name it as owner."""
    return reference(cluster.admin.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": space}}))  # fmt: skip


def test_jobs_of_a_jobset(held, module_cluster, door):
    """Two Jobs of one owner in one group start together."""
    space = door()
    owner = simulated(module_cluster, space, "set")
    for name in ("driver", "workers"):
        job = work.job(name, pods=1 if name == "driver" else 3, namespace=space, cpu=1, run=60, indexed=True)
        job["metadata"]["ownerReferences"] = [owner]
        job["metadata"]["labels"] = {"sluice.sh/group": "set", "sluice.sh/size": "4"}
        module_cluster.admin.create(job)
    found = running(module_cluster, space, 4)
    assert len({p["metadata"]["labels"]["fluxqueue/jobid"] for p in found}) == 1, "one gang"
    for p in found:
        check_released(p)


def test_resumed_by_somebody_else(held, module_cluster, door, full):
    """A JobSet controller resumes the Jobs it made: the gate still holds their pods."""
    space = door()
    admin = module_cluster.admin
    admin.create(work.job("eager", pods=2, namespace=space, cpu=2, run=60))
    until(lambda: state(held, space, "eager") == "waiting", 20, "queued")
    admin.patch("jobs", "eager", {"spec": {"suspend": False}}, namespace=space)
    until(lambda: len(pods(module_cluster, space)) == 2, 20, "pods")
    assert all(p["spec"]["schedulingGates"] == [{"name": GATE}] for p in pods(module_cluster, space))
    full()
    for p in running(module_cluster, space, 2):
        check_released(p)


def test_pods_of_an_operator(held, module_cluster, door):
    """MPIJob: a launcher Job and worker pods of one owner; LeaderWorkerSet: a StatefulSet of one."""
    space = door()
    owner = simulated(module_cluster, space, "mpi")
    launcher = work.job("mpi-launcher", pods=1, namespace=space, cpu=1, run=60)
    launcher["metadata"]["ownerReferences"] = [owner]
    module_cluster.admin.create(launcher)
    for i in range(3):
        p = work.pod(f"mpi-worker-{i}", cpu=1, namespace=space, run=60)
        p["metadata"]["ownerReferences"] = [owner]
        module_cluster.admin.create(p)
    lws = deployment("leader", space, 2, kind="StatefulSet", podManagementPolicy="Parallel")
    lws["metadata"]["ownerReferences"] = [simulated(module_cluster, space, "lws")]
    module_cluster.admin.create(lws)
    for p in running(module_cluster, space, 6):
        check_released(p)


def test_generated_name(held, module_cluster, door):
    space = door()
    p = work.pod("x", cpu=1, namespace=space, run=60)
    p["metadata"].pop("name")
    p["metadata"]["generateName"] = "some-"
    module_cluster.admin.create(p)
    (p,) = running(module_cluster, space, 1)
    check_released(p)


# ---- what stays as it was ----


def test_other_gates_and_terms_are_kept(held, module_cluster, door):
    space = door()
    admin = module_cluster.admin
    terms = [
        {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]},
        {"matchExpressions": [{"key": "no-such-label", "operator": "Exists"}]},
    ]
    p = work.pod("two-gates", cpu=1, namespace=space, run=60, schedulingGates=[{"name": "example.com/other"}])
    p["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": copy.deepcopy(terms)},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": terms[0]}],
        }
    }
    made = admin.create(p)
    assert [g["name"] for g in made["spec"]["schedulingGates"]] == ["example.com/other", GATE]
    time.sleep(1)
    assert len(admin.get("pods", "two-gates", space)["spec"]["schedulingGates"]) == 2, "not released before the other"
    admin.patch("pods", "two-gates", {"spec": {"schedulingGates": [{"name": GATE}]}}, namespace=space)
    (p,) = running(module_cluster, space, 1)
    node = check_released(p)
    affinity = p["spec"]["affinity"]["nodeAffinity"]
    pin = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchExpressions": t["matchExpressions"] + [pin]} for t in terms
    ]
    assert len(affinity["preferredDuringSchedulingIgnoredDuringExecution"]) == 1


def test_job_with_another_gate(held, module_cluster, door):
    """The Job is resumed at once, so that the owner of the other gate sees the pods; they are placed when that gate
    is gone."""
    space = door()
    admin = module_cluster.admin
    admin.create(work.job("two", pods=2, namespace=space, cpu=1, run=60, schedulingGates=[{"name": "example.com/other"}]))
    until(lambda: len(pods(module_cluster, space)) == 2, 20, "pods")
    for p in pods(module_cluster, space):
        admin.patch("pods", p["metadata"]["name"], {"spec": {"schedulingGates": [{"name": GATE}]}}, namespace=space)
    for p in running(module_cluster, space, 2):
        check_released(p)


def test_other_namespaces_are_untouched(held, module_cluster, door):
    for mode in (None, "false", "nonsense"):
        space = door(mode)
        made = module_cluster.admin.create(work.pod("free", cpu=1, namespace=space, run=60))
        assert "schedulingGates" not in made["spec"]
        job = module_cluster.admin.create(work.job("free", pods=1, namespace=space, cpu=1, run=60))
        assert not job["spec"].get("suspend")
        running(module_cluster, space, 2)
    # What they use is running work to the plan, visible under numbers of its own.
    foreign = until(lambda: len(found := [f for f in held.get("/v1/jobs?all=true")["foreign"] if f["namespace"] == space]) == 2 and found)
    assert len({f["id"] for f in foreign}) == 2
    assert {f["needs"] for f in foreign} == {"1 cpu, 64Mi memory"} and all(f["node"].startswith("node-") for f in foreign)

    def jobs(*words):
        command = [program("sluice"), "jobs", "--all", *words, "-s", f"unix:{held.socket}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert sum(" foreign " in line for line in jobs("-n", space).splitlines()) == 2
    assert len(json.loads(jobs("-n", space, "-o", "json"))["foreign"]) == 2
    assert json.loads(jobs("-n", "nosuch", "-o", "json"))["foreign"] == []
    module_cluster.admin.patch("namespaces", "kube-system", {"metadata": {"labels": {"sluice.sh/hold": "true"}}}, namespace=None)
    made = module_cluster.admin.create(work.job("sys", pods=1, namespace="kube-system", cpu=1, run=1))
    time.sleep(1)
    assert not module_cluster.admin.get("jobs", "sys", "kube-system")["spec"].get("suspend"), "never the system's"


# ---- the published examples of Fluxqueue, unchanged ----

FLUXQUEUE = EXAMPLES / "fluxqueue"


def example_files():
    for file in sorted(FLUXQUEUE.glob("**/*.yaml")):
        if all(o["kind"] != "FluxJob" for o in yaml.safe_load_all(file.read_text())):
            yield pytest.param(file, id=str(file.relative_to(FLUXQUEUE)))


@with_examples
def test_examples_are_there():
    assert len(list(example_files())) >= 11


@with_examples
@pytest.mark.parametrize("file", list(example_files()))
def test_fluxqueue_example(held, module_cluster, door, file):
    """The example runs within seconds under FluxionScheduler, as Fluxqueue's users expect, and is gone after its
    deletion."""
    space = door("compatible")
    (obj,) = [o for o in yaml.safe_load_all(file.read_text()) if o]
    obj["metadata"]["namespace"] = space
    made = module_cluster.admin.create(obj)
    assert made["metadata"]["labels"]["fluxqueue.seen"] == "yes"
    count = {"Pod": 1, "Job": obj["spec"].get("parallelism")}.get(obj["kind"]) or obj["spec"].get("replicas")
    placed = until(
        lambda: (lambda f: f if len(f) == count else None)([p for p in pods(module_cluster, space) if p["spec"].get("nodeName")]),
        20, f"{count} pods placed",
    )  # fmt: skip
    for p in placed:
        node = check_released(p, scheduler="FluxionScheduler")
        assert node in p["metadata"]["labels"]["fluxqueue/fluxion-nodes"].split("__")
    clean(held, module_cluster, space)


def test_unsatisfiable_in_compatible_mode(held, module_cluster, door):
    """A Job that can never run stays held, with the label that Fluxqueue's plugin set, and its FluxJob says why."""
    space = door("compatible")
    admin = module_cluster.admin
    admin.create(work.job("vast", pods=2, namespace=space, cpu=64, run=60))
    label = lambda: admin.get("jobs", "vast", space)["metadata"].get("labels", {}).get("fluxqueue/unschedulable")  # noqa: E731
    until(lambda: label() == "yes", 20, "labelled")
    until(lambda: state(held, space, "vast") == "never")
    assert admin.get("jobs", "vast", space)["spec"]["suspend"] is True
    clean(held, module_cluster, space)


# ---- what the webhook did not see ----


def hold_space(cluster, space, mode="true"):
    cluster.admin.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": mode}}}, namespace=None)


def test_objects_that_exist_already(held, module_cluster, door, full):
    """The namespace is labelled later: Sluice holds work that waits, and leaves running work alone but counts it."""
    space = door(None)
    admin = module_cluster.admin
    full(1)
    admin.create(work.job("runs", pods=1, namespace=space, cpu=3, run=600))
    admin.create(deployment("old", space, 1))
    before = {p["metadata"]["uid"] for p in running(module_cluster, space, 2)}
    admin.create(work.job("waits", pods=2, namespace=space, cpu=2, run=60))
    admin.create(deployment("web", space, 1))
    until(lambda: len(pods(module_cluster, space)) == 5, 20, "pods that wait for the default scheduler")
    hold_space(module_cluster, space)
    until(lambda: mark(admin, space, "waits") == "yes", 20, "the Job that waits is held")
    until(lambda: state(held, space, "waits") == "waiting", 20, "and queued")
    gates = lambda name: admin.get("deployments", name, space)["spec"]["template"]["spec"].get("schedulingGates")  # noqa: E731
    until(lambda: gates("web") == [{"name": GATE}], 20, "the Deployment's template is gated")
    admin.patch("deployments", "old", {"spec": {"replicas": 2}}, namespace=space)
    full()

    # The Deployment's first pod was made without a gate: it may run until the roll-out ends it.
    def others():
        alive = [p for p in pods(module_cluster, space) if p["metadata"]["uid"] not in before]
        done = [p for p in alive if p["status"].get("phase") == "Running" and "sluice.sh/node" in p["metadata"]["labels"]]
        return done if len(done) == len(alive) == 4 else None

    try:
        found = until(others, 40, "four released pods")
    except TimeoutError as e:
        seen = [(p["metadata"]["name"], p["status"].get("phase"), p["spec"].get("schedulingGates"), p["metadata"].get("annotations"))
                for p in pods(module_cluster, space)]  # fmt: skip
        raise TimeoutError(f"{e}: {seen} {held.jobs(space)}") from None
    for p in found:
        check_released(p)
    assert not admin.get("jobs", "runs", space)["spec"].get("suspend") and not gates("old"), "what runs is left alone"
    left = [p for p in pods(module_cluster, space) if p["metadata"]["uid"] in before]
    assert len(left) == 2 and all(p["status"]["phase"] == "Running" for p in left)


def test_made_while_the_webhook_was_down(held, module_cluster, door, full):
    """While the daemon is away no work is stopped; when it is back, it holds what was created in the meantime and
    still waits."""
    space = door()
    admin = module_cluster.admin
    time.sleep(0.5)
    held.stop()
    try:
        begin = time.monotonic()
        # The naked pod may take the room that one of the others was to get; that one is then planned again.
        job = admin.create(work.job("alone", pods=2, namespace=space, cpu=2, run=60, backoff=6))
        admin.create(work.pod("naked", cpu=1, namespace=space, run=600))
        free = door(None)
        admin.create(work.pod("free", cpu=1, namespace=free, run=600))
        assert time.monotonic() - begin < 60, "creation goes on"
        assert not job["spec"].get("suspend")
        until(lambda: len(pods(module_cluster, space)) == 3, 20, "pods")
    finally:
        held.start()
    until(lambda: mark(admin, space, "alone") == "yes", 20, "held by the controller")
    until(lambda: state(held, space, "alone") == "waiting", 20, "queued")
    full()
    found = {p["metadata"]["name"]: p for p in running(module_cluster, space, 3, timeout=40)}
    found.pop("naked")  # no gate can be added to a pod that exists: the default scheduler has it
    for p in found.values():
        check_released(p)


class BadHook:
    """Another program on the webhook's port: slow, or answering nonsense."""

    def __init__(self, port, folder, answer, delay=0.0):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(delay)
                try:
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.mark.parametrize("trouble", ["slow", "garbage"])
def test_webhook_in_trouble(held, module_cluster, door, tmp_path, trouble):
    """A webhook that sleeps 10 s or answers nonsense under the right certificate: the cluster goes on, no object of
    others is stopped, and when the daemon is back it holds what was created in the meantime."""
    space, free = door(), door(None)
    admin = module_cluster.admin
    secret = admin.get("secrets", "sluice-webhook", "sluice-system")["data"]
    for key in ("tls.crt", "tls.key"):
        (tmp_path / key).write_bytes(base64.b64decode(secret[key]))
    held.stop()
    try:
        with BadHook(held.hook_port, tmp_path, b'{"kind": "Pod", "response": 7' * 50, delay=10 if trouble == "slow" else 0):
            begin = time.monotonic()
            admin.create(work.pod("free", cpu=1, namespace=free, run=600))
            assert time.monotonic() - begin < 5, "namespaces that are not held do not even notice"
            begin = time.monotonic()
            job = work.job("late", pods=2, namespace=space, cpu=1, run=60, backoff=6)
            job["spec"]["parallelism"] = 0  # so that it has no pods when the daemon comes back
            admin.create(job)
            assert time.monotonic() - begin < 10, "5 s are the longest anybody waits"
            running(module_cluster, free, 1)
    finally:
        held.start()
    until(lambda: mark(admin, space, "late"), 20, "held")
    admin.patch("jobs", "late", {"spec": {"parallelism": 2}}, namespace=space)
    for p in running(module_cluster, space, 2, timeout=30):
        check_released(p)


def test_restart_in_the_middle(held, module_cluster, door, full):
    """After a restart the daemon knows held, released and running work from the objects alone."""
    space = door()
    admin = module_cluster.admin
    full(2)
    admin.create(work.job("runs", pods=2, namespace=space, cpu=3, run=600, backoff=6))
    before = {p["metadata"]["uid"]: check_released(p) for p in running(module_cluster, space, 2)}
    admin.create(work.job("waits", pods=4, namespace=space, cpu=3, run=600, backoff=6))
    until(lambda: state(held, space, "waits") == "waiting", 20, "queued")
    until(lambda: len(pods(module_cluster, space)) > 2, 20, "its pods appear at the gate")
    held.kill()
    held.start()
    until(lambda: state(held, space, "runs") == "running", 20, "running again")
    until(lambda: state(held, space, "waits") == "waiting", 20, "waiting again")
    until(lambda: held.jobs(space)["runs"]["bound"] == 2)
    full()
    found = running(module_cluster, space, 6, timeout=30)
    assert before.items() <= {p["metadata"]["uid"]: check_released(p) for p in found}.items()
    clean(held, module_cluster, space)


# ---- the scheduler has the last word ----


def anti_affinity(name):
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "topology.kubernetes.io/zone"}]}}  # fmt: skip


def hard_spread(name, skew):
    return [{"maxSkew": skew, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": name}}}]  # fmt: skip


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_refused_pods_get_another_place(held, module_cluster, door, kind):
    """Two pods that may not share a zone, which Sluice does not decide: the default scheduler refuses one."""
    space = door()
    if kind == "Job":
        obj = work.job("apart", pods=2, namespace=space, cpu="10m", run=60, labels={"app": "apart"}, backoff=6)
    else:
        obj = deployment("apart", space, 2, cpu="10m")
    obj["spec"]["template"]["spec"]["affinity"] = anti_affinity("apart")
    module_cluster.admin.create(obj)
    found = running(module_cluster, space, 2, timeout=40)
    assert len({check_released(p) for p in found}) == 2
    until(lambda: held.metrics()["sluice_pods_refused_total"] > 0, 10, "it was refused first")
    clean(held, module_cluster, space)


def test_handed_over(held, module_cluster, door):
    """Pods that name Sluice but need what only the default scheduler decides: Sluice gates and pins them, the
    default scheduler binds them."""
    space = door(None)
    p = work.pod("affine", cpu=1, namespace=space, run=60, scheduler="sluice", labels={"app": "affine"})
    p["spec"]["affinity"] = anti_affinity("affine")
    made = module_cluster.admin.create(p)
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made["spec"]["schedulingGates"] == [{"name": GATE}]
    job = work.job("spread", pods=2, namespace=space, cpu=1, run=60, scheduler="fluence", labels={"app": "spread"})
    job["spec"]["template"]["spec"]["topologySpreadConstraints"] = hard_spread("spread", 2)
    module_cluster.admin.create(job)
    for p in running(module_cluster, space, 3):
        check_released(p)


def test_unbound_claim_is_handed_over(held, module_cluster, door):
    """A claim that waits for its first consumer: the default scheduler binds it on the planned node."""
    space = door(None)
    admin = module_cluster.admin
    admin.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
                 "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})  # fmt: skip
    admin.create({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{space}"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                 "local": {"path": "/data"}, "persistentVolumeReclaimPolicy": "Retain",
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                     {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-003", "node-000"]}]}]}}},
    })  # fmt: skip
    admin.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": space},
                  "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                           "resources": {"requests": {"storage": "1Gi"}}}})  # fmt: skip
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    made = admin.create(work.pod("uses", cpu="10m", namespace=space, run=60, scheduler="sluice", volumes=[volume]))
    assert made["spec"]["schedulerName"] == "default-scheduler"
    (p,) = running(module_cluster, space, 1, timeout=30)
    assert check_released(p) in ("node-000", "node-003")
    assert admin.get("persistentvolumeclaims", "data", space)["spec"]["volumeName"] == f"pv-{space}"

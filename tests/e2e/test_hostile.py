"""Attacks on a real API server, by a user with nothing but the edit role in one namespace and by the network: none
may succeed."""

import copy
import http.client
import resource
import socket
import time

import pytest
import yaml

from cluster import ApiError, work
from cluster.api import Api

from .conftest import crds, until
from .daemon import ROOT, Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 2, "cpu": 4}]}


@pytest.fixture(scope="module")
def daemon(module_cluster):
    crds(module_cluster)
    with Sluiced(module_cluster) as d:
        yield d


@pytest.fixture(scope="module")
def policy(module_cluster):
    for obj in yaml.safe_load_all((ROOT / "deploy" / "policy.yaml").read_text()):
        module_cluster.admin.apply(obj)


@pytest.fixture
def mallory(module_cluster, space):
    """A client with the edit role in the test's namespace alone."""
    module_cluster.admin.create({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "edit", "namespace": space},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    })  # fmt: skip
    return Api.from_kubeconfig(module_cluster.sign_in("mallory", "mallory"))


def forged(name, space, node):
    p = copy.deepcopy(work.gang(name, 1, cpu=3, namespace=space, run=60, scheduler="default-scheduler")[0])
    p["metadata"]["name"] = name
    p["metadata"].setdefault("annotations", {})["sluice.sh/node"] = node
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    p["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    p["spec"]["nodeSelector"] = {"no-such": "label"}  # so that the default scheduler leaves it pending
    return p


def test_a_forged_release_takes_no_room(daemon, module_cluster, mallory, space):
    for node in ("node-000", "node-001"):
        mallory.create(forged(f"f-{node}", space, node))
    module_cluster.admin.create_many(work.gang("victim", 2, cpu=4, namespace=space, run=1))
    until(lambda: module_cluster.admin.get("pods", "victim-0", space)["spec"].get("nodeName"))


def refusal(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except ApiError as e:
        return str(e)
    return None


def test_the_policy_keeps_what_is_ours(policy, daemon, module_cluster, mallory, space):
    def forging():
        return refusal(mallory.create, forged(f"g{time.monotonic_ns()}", space, "node-000")) or ""

    # The API server obeys a policy it has just learned of a moment later.
    until(lambda: "only Sluice writes" in forging())
    gated = forged("gated", space, "node-000")
    gated["metadata"]["annotations"] = {}
    gated["spec"]["schedulingGates"] = [{"name": "fluxqueue"}]
    mallory.create(gated)
    opening = {"spec": {"schedulingGates": None}}
    assert "opened by Sluice" in refusal(mallory.patch, "pods", "gated", opening, namespace=space)
    noting = {"metadata": {"annotations": {"sluice.sh/user": "grace"}}}
    assert "cannot be changed after the object was created" in refusal(mallory.patch, "pods", "gated", noting, namespace=space)
    assert refusal(mallory.patch, "pods", "gated", {"metadata": {"labels": {"x": "y"}}}, namespace=space) is None


def test_templates_carry_nothing_of_ours(policy, daemon, module_cluster, mallory, space):
    """Objects that a controller makes from a template are written by an account that the policy lets through."""

    def job(name, **notes):
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": space},
                "spec": {"parallelism": 1, "template": {"metadata": {"annotations": notes}, "spec": {
                    "restartPolicy": "Never", "schedulerName": "sluice", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip

    until(lambda: "templates may not carry" in (refusal(mallory.create, job(f"t{time.monotonic_ns()}", **{"sluice.sh/node": "node-000"})) or ""))
    for key in ("sluice.sh/places", "sluice.sh/user", "sluice.sh/set-priority"):
        assert "templates may not carry" in refusal(mallory.create, job("t", **{key: "1"}))
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron", "namespace": space},
            "spec": {"schedule": "* * * * *", "suspend": True, "jobTemplate": {
                "metadata": {"annotations": {"sluice.sh/user": "grace"}}, "spec": job("j")["spec"]}}}  # fmt: skip
    assert "templates may not carry" in refusal(mallory.create, cron)
    template = {"metadata": {"labels": {"a": "b"}, "annotations": {"sluice.sh/node": "node-000"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    for api, kind, selector in (("v1", "ReplicationController", {"a": "b"}), ("apps/v1", "DaemonSet", {"matchLabels": {"a": "b"}})):
        made = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": space}, "spec": {"selector": selector, "template": template}}
        assert "templates may not carry" in (refusal(mallory.create, made) or "it was made"), kind
    del cron["spec"]["jobTemplate"]["metadata"]
    assert refusal(mallory.create, cron) is None
    assert refusal(mallory.create, job("fine", **{"example.com/x": "y"})) is None


def may_edit_fluxjobs(admin):
    """The role that the manifests add to `edit`."""
    for obj in yaml.safe_load_all((ROOT / "deploy" / "sluice.yaml").read_text()):
        if obj["kind"] == "ClusterRole" and "rbac.authorization.k8s.io/aggregate-to-edit" in obj["metadata"].get("labels", {}):
            admin.apply(obj)


def test_a_thousand_large_objects(daemon, module_cluster, mallory, space):
    """One user creates objects of the largest legal size; another user's gang of two still starts within a second."""
    admin = module_cluster.admin

    def start(name):
        """Seconds until a gang of two is bound; the gang then leaves its nodes to the next."""
        pods = work.gang(name, 2, cpu=1, namespace="default", run=0, scheduler="sluice")
        names = [p["metadata"]["name"] for p in pods]
        began = time.monotonic()
        admin.create_many(pods)
        until(lambda: all(admin.get("pods", p, "default")["spec"].get("nodeName") for p in names), interval=0.02)
        took = time.monotonic() - began
        for p in names:
            admin.delete("pods", p, "default", grace=0)
        until(lambda: not {p["metadata"]["name"] for p in admin.list("pods", "default")} & set(names))
        return took

    may_edit_fluxjobs(admin)
    admin.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": "true"}}})
    calm = min(start(f"calm{i}") for i in range(3))
    spec = ("version: 1\nresources: [{type: slot, count: 10000, label: s, with: [{type: core, count: 1}]}]\n"
            "tasks: [{command: [x], slot: s, count: {per_slot: 1}}]\nattributes: {system: {duration: 60}}\n")  # fmt: skip

    def job(name, pods):
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": space}, "spec": {
            "parallelism": pods, "completions": pods, "suspend": True, "template": {"spec": {
                "schedulerName": "sluice", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}  # fmt: skip

    def fluxjob(name):
        return {"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob",
                "metadata": {"name": name, "namespace": space}, "spec": {"jobspec": spec}}  # fmt: skip

    until(lambda: refusal(mallory.create, fluxjob("first")) is None)
    hostile = []
    for i in range(333):
        hostile += [job(f"beyond{i}", 2_000_000), job(f"large{i}", 99_999), fluxjob(f"flux{i}")]
    mallory.create_many(hostile)
    # Of five the best: the machine that runs the test may be busy, a core that is stalled delays all.
    under = [start(f"under{i}") for i in range(5)]
    longest = daemon.metrics()["sluice_cycle_seconds_max"]
    print(f"a gang of 2 starts in {calm:.2f} s, among 1000 hostile objects in {min(under):.2f} s (of {[round(t, 2) for t in under]}); longest cycle {longest:.3f} s")
    assert min(under) < 1 + calm and longest < 1


def odd_pods(space):
    """Hostile pods that the API server accepts."""
    notes = [
        *({"sluice.sh/begin": t} for t in ("1969-12-31T23:59:59Z", "2038-01-19T03:14:08Z", "9999-12-31T23:59:59Z", "0000-00-00T00:00:00Z", "-1", "99999999999999999999")),
        *({"sluice.sh/duration": t} for t in ("9223372036854775807", "9223372036854775807d", "-1", "0", "1e308", "nan")),
        *({"sluice.sh/deadline": t} for t in ("1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z")),
        *({"sluice.sh/group": "odd", "sluice.sh/size": t} for t in ("4294967296", "-3", "0", "0x10", "\u0663", "1" * 1000)),
        *({"sluice.sh/" + key: "\u202e" + "\U0001f4a3" * 60000} for key in ("group", "queue", "after", "topology", "reservation", "user")),
        {"sluice.sh/after": ",".join(f"l{i}=x" for i in range(20000))},
        {f"sluice.sh/k{i}": "x" for i in range(10000)},
        {"sluice.sh/places": "node-000*4294967296,node-001*-1,*,,"},
        {"sluice.sh/set-priority": "2147483647", "sluice.sh/set-limit": "-1"},
    ]  # fmt: skip
    amounts = [{"cpu": "9223372036854775807"}, {"memory": "9223372036854775807"}, {"cpu": "9E"}, {"memory": "0.000000001"}, {"cpu": "1n"}]
    owners = [
        [{"apiVersion": "batch/v1", "kind": "Job", "name": "nobody", "uid": "u#0", "controller": True}],
        [{"apiVersion": "batch/v1", "kind": "Job", "name": "x" * 253, "uid": "\u202e" * 3000, "controller": True}],
        [{"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob", "name": "f", "uid": "f", "controller": True}],
        [{"apiVersion": "v1", "kind": "Pod", "name": f"p{i}", "uid": str(i)} for i in range(2000)],
    ]
    for i, change in enumerate([*({"annotations": n} for n in notes), *({"requests": r} for r in amounts), *({"ownerReferences": o} for o in owners)]):
        p = work.gang(f"odd{i}", 1, cpu=1, namespace=space, run=60, scheduler="sluice")[0]
        p["metadata"]["annotations"] = change.get("annotations", {})
        if "ownerReferences" in change:
            p["metadata"]["ownerReferences"] = change["ownerReferences"]
        if "requests" in change:
            p["spec"]["containers"][0]["resources"] = {"requests": change["requests"]}
        p["metadata"]["name"] = f"odd{i}-" + "x" * (243 if i % 2 else 1)
        p["metadata"].pop("labels", None)
        p["metadata"]["labels"] = {"sluice.sh/group": f"g{i}-" + "y" * 55, "sluice.sh/size": "2"} if i % 3 == 0 else {}
        yield p


def odd_fluxjobs(space):
    head, tail = "version: 1\nresources: [{type: slot, count: ", ", label: s, with: [{type: core, count: 1}]}]\ntasks: [{command: [x], slot: s, count: {per_slot: 1}}]\n"
    texts = [
        *(head + n + tail for n in ("18446744073709551616", "-1", "0", "1e308", ".nan", "{min: 1, max: 4000000000, operator: '*', operand: 2}", "10000")),
        head + "1" + tail + "attributes: {system: {duration: 1.0e+308}}\n",
        "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{c}: &{c} [*{p},*{p},*{p},*{p},*{p},*{p},*{p},*{p},*{p}]\n" for p, c in zip("abcdefgh", "bcdefghi")),
        "[" * 100000,
        "\U0001f4a3" * 100000,
        head + "1" + tail + "#" + "x" * 900000,
    ]  # fmt: skip
    for i, text in enumerate(texts):
        yield {"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob",
               "metadata": {"name": f"odd{i}", "namespace": space, "labels": {"z": "y" * 63}}, "spec": {"jobspec": text}}  # fmt: skip


def odd_reservations(space):
    for i, (start, end, more) in enumerate([
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", {"count": 1}), ("1969-12-31T23:59:59Z", "1970-01-01T00:00:01Z", {"count": 1}),
        ("2038-01-19T03:14:07Z", "2038-01-19T03:14:09Z", {"count": 2147483647}), ("2999-01-01T00:00:00Z", "2998-01-01T00:00:00Z", {"count": 1}),
        ("2999-01-01T00:00:00Z", "2999-01-01T00:00:01Z", {"nodes": [f"n{k}" for k in range(10000)]}),
        ("2999-01-01T00:00:00Z", "2999-01-01T01:00:00Z", {"count": 1, "every": "1s"}),
        ("2999-01-01T00:00:00Z", "2999-01-01T01:00:00Z", {"amounts": {"cpu": "9223372036854775807", "": "-1"}}),
    ]):  # fmt: skip
        yield {"apiVersion": "sluice.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": f"odd{i}", "namespace": space},
               "spec": {"start": start, "end": end, **more}}  # fmt: skip


def test_odd_objects(daemon, module_cluster, mallory, space):
    """Every hostile object that a user can write, changed fast and at the limits: the daemon lives, says that it is
    ready, and starts another user's gang; it does so after a restart, too, which meets all of it at once."""
    admin = module_cluster.admin
    may_edit_fluxjobs(admin)
    admin.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": "true"}}})
    until(lambda: refusal(mallory.create, next(odd_fluxjobs(space))) is None)
    refused = [bool(refusal(mallory.create, o)) for o in [*odd_pods(space), *list(odd_fluxjobs(space))[1:], *odd_reservations(space)]]

    def job(name, **spec):
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": space}, "spec": {
            "suspend": True, "template": {"spec": {"schedulerName": "sluice", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}, **spec}}  # fmt: skip

    made = [mallory.create(job(f"ring{i}", parallelism=2147483647)) for i in range(2)]
    for i in range(2):  # each owns the other, and itself
        owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": o["metadata"]["name"], "uid": o["metadata"]["uid"], "controller": o is made[1 - i]} for o in made]
        mallory.patch("jobs", f"ring{i}", {"metadata": {"ownerReferences": owners, "finalizers": ["example.com/never"]}}, namespace=space)
    mallory.delete("jobs", "ring0", space)

    def starts(name):
        pods = work.gang(name, 2, cpu=1, namespace="default", run=0, scheduler="sluice")
        began = time.monotonic()
        admin.create_many(pods)
        until(lambda: all(admin.get("pods", p["metadata"]["name"], "default")["spec"].get("nodeName") for p in pods), interval=0.02)
        return time.monotonic() - began

    for i in range(200):
        mallory.patch("jobs", "ring1", {"spec": {"parallelism": (2147483647, 1, 99999)[i % 3], "suspend": True}}, namespace=space)
    took = min(starts(f"v{i}") for i in range(3))
    assert daemon.process.poll() is None
    status, body = daemon.request("GET", "/readyz")
    assert status == 200, body
    daemon.kill()
    daemon.start()
    again = min(starts(f"w{i}") for i in range(3))
    print(f"{len(refused)} odd objects, {sum(refused)} refused by the API server; a gang of 2 starts in {took:.2f} s, after a restart in {again:.2f} s")
    status, body = daemon.request("GET", "/readyz")
    assert status == 200, body
    assert daemon.process.poll() is None and took < 2 and again < 2


def test_silent_connections_leave_health_alone(daemon, module_cluster):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    words = [w for w in daemon.log.read_text().split() if w.startswith(("health_port=", "https_port="))]
    ports = {k: int(v) for k, v in (w.split("=") for w in words)}
    silent = []
    try:
        for _ in range(1100):
            silent.append(socket.create_connection(("127.0.0.1", ports["https_port"])))
        probe = http.client.HTTPConnection("127.0.0.1", ports["health_port"], timeout=2)
        probe.request("GET", "/healthz")
        assert probe.getresponse().status == 200
        assert daemon.request("GET", "/v1/queues")[0] == 200
        probe = http.client.HTTPConnection("127.0.0.1", ports["health_port"], timeout=2)
        probe.request("POST", "/healthz", b"x" * 100)
        assert probe.getresponse().status == 413
    finally:
        for s in silent:
            s.close()

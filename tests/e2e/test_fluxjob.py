"""FluxJobs on a live cluster: made for held work, written by users, deleted, over a restart, and a server
that does not know them."""

import subprocess
import time
from datetime import datetime

import pytest
import yaml

from cluster import work
from cluster.audit import Audit
from cluster.cluster import kubectl

from .conftest import crds, until
from .daemon import ROOT, Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 4, "cpu": 4}]}
CRD = "fluxjobs.jobs.converged-computing.org"
JOBSPEC = """
version: 1
resources:
- type: node
  count: {nodes}
  with:
  - type: slot
    count: 1
    label: main
    with: [{{type: core, count: {cores}}}]
tasks: [{{command: [app], slot: main, count: {{per_slot: 1}}}}]
attributes: {{system: {{duration: {duration}}}}}
"""


@pytest.fixture(scope="module")
def sluiced(module_cluster, tmp_path_factory):
    """No webhook: what the controller finds is held by the controller."""
    crds(module_cluster)
    folder = tmp_path_factory.mktemp("fluxjob")
    with Sluiced(module_cluster, store=str(folder / "s.db"), folder=folder, config={"status": {"interval": "5s"}}) as d:
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


@pytest.fixture
def hold(module_cluster, space):
    module_cluster.admin.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": "true"}}}, None)
    return space


@pytest.fixture
def fluxjobs(module_cluster, space):
    """fluxjobs(): those of the test's namespace by name."""
    return lambda: {f["metadata"]["name"]: f for f in module_cluster.admin.list("fluxjobs", space)}


def state(fluxjob):
    return (fluxjob or {}).get("status", {}).get("state")


def write(cluster, space, name, nodes=1, cores=1, duration=0, jobspec=None, labels=None, **more):
    meta = {"name": name, "namespace": space, "labels": labels or {}}
    text = JOBSPEC.format(nodes=nodes, cores=cores, duration=duration) if jobspec is None else jobspec
    return cluster.admin.create(
        {"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob", "metadata": meta, "spec": {"jobspec": text, **more}}
    )


def gated(name, space, pods=2, **more):
    """A Job as the webhook leaves it."""
    job = work.job(name, pods, namespace=space, schedulingGates=[{"name": "fluxqueue"}], **more)
    job["spec"]["suspend"] = True
    job["metadata"]["annotations"] = {"sluice.sh/held": "yes"}
    return job


def test_held_work_has_a_fluxjob(sluiced, module_cluster, hold, fluxjobs):
    api = module_cluster.admin
    api.create(gated("solver", hold, cpu=2, run=600))
    made = until(lambda: fluxjobs().get("solver-job"))
    job = api.get("jobs", "solver", hold)
    assert made["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    assert (made["spec"]["type"], made["spec"]["name"], made["spec"]["nodes"]) == (1, "solver", 2)
    spec = yaml.safe_load(made["spec"]["jobspec"])
    assert spec["resources"][0]["count"] == 2 and {"type": "core", "count": 2} in spec["resources"][0]["with"]
    runs = until(lambda: state(f := fluxjobs()["solver-job"]) == "Running" and f)
    nodes = until(lambda: {p["spec"]["nodeName"] for p in api.list("pods", hold)})
    assert runs["status"]["submitStatus"] == "statusSubmit" and runs["status"]["jobid"] > 0
    assert all(n.rpartition("-")[2] in runs["status"]["nodeList"] for n in nodes)
    for p in api.list("pods", hold):
        api.patch("pods", p["metadata"]["name"], {"metadata": {"annotations": {"sluice.test/run-seconds": "1"}}}, hold)
    done = until(lambda: state(f := fluxjobs()["solver-job"]) == "Finished" and f)
    assert work.condition(done, "Finished")["reason"] == "Succeeded"
    assert done["status"]["nodeList"] == runs["status"]["nodeList"] and done["status"]["startTime"]
    assert work.condition(done, "Scheduled")["status"] == "True"
    # It goes with its owner.
    api.delete("jobs", "solver", hold, propagation="Background")
    until(lambda: not fluxjobs(), 30)


def test_few_writes(sluiced, module_cluster, hold, fluxjobs):
    """Create, at most one status before the start, one at the start, one at the end; six writes a pod in all."""
    audit, begun = Audit(module_cluster.audit_log).skip(), time.monotonic()
    names = [f"few-{i}" for i in range(6)]
    module_cluster.admin.create_many([gated(n, hold, pods=4, cpu=2, run=1) for n in names])
    until(lambda: len(fluxjobs()) == 6 and all(state(f) == "Finished" for f in fluxjobs().values()), 60)
    counts = audit.requests("system:serviceaccount:sluice-system:sluice")
    writes = {what: n for what, n in counts.items() if what[0] not in ("get", "list", "watch") and "leases" not in what[1]}
    ours = sum(n for (_, resource, _), n in writes.items() if resource.startswith("fluxjobs"))
    print(writes)
    assert ours <= 6 * (4 + (time.monotonic() - begun) / 5)  # and one for each status.interval that they wait
    assert sum(writes.values()) <= 6 * 4 * 6


def test_position_estimate_and_columns(sluiced, module_cluster, hold, fluxjobs):
    api = module_cluster.admin
    api.create(gated("first", hold, pods=4, cpu=4, run=600))
    until(lambda: state(fluxjobs().get("first-job")) == "Running")
    api.create(gated("second", hold, pods=4, cpu=4, run=600))
    waits = until(lambda: state(f := fluxjobs()["second-job"]) == "Queued" and f["status"]["startEstimate"] and f)
    assert waits["status"]["position"] == 1 and work.condition(waits, "Scheduled")["reason"] == "Waiting"
    command = [kubectl(), "--kubeconfig", module_cluster.kubeconfig, "-n", hold, "get", CRD]
    table = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert table[0].split() == ["NAME", "STATE", "POSITION", "START", "NODES", "AGE"]
    assert any(line.startswith("first-job") and "Running" in line and "node-" in line for line in table)
    # Deleting the FluxJob takes the work out of the queue, and it stays out.
    api.delete("fluxjobs", "second-job", hold)
    until(lambda: api.get("jobs", "second", hold)["metadata"]["annotations"].get("sluice.sh/cancelled") == "true")
    api.delete("jobs", "first", hold, propagation="Background")
    sluiced.kill()
    sluiced.start()
    until(lambda: sluiced.jobs(hold).get("second", {}).get("state") == "cancelled", 20, "known as cancelled")
    until(lambda: api.get("jobs", "second", hold)["spec"]["suspend"], 20, "suspended again, if it was ahead")
    time.sleep(1)
    assert api.get("jobs", "second", hold)["spec"]["suspend"] and "second-job" not in fluxjobs()
    assert sluiced.request("POST", f"/v1/jobs/{hold}/second/release")[0] == 200
    until(lambda: state(fluxjobs().get("second-job")) == "Running", 20, "released: it is there again")
    assert "sluice.sh/cancelled" not in api.get("jobs", "second", hold)["metadata"]["annotations"]


def test_a_users_jobspec(sluiced, module_cluster, space, fluxjobs):
    api = module_cluster.admin
    write(module_cluster, space, "mine", nodes=3, cores=4, duration=10)
    runs = until(lambda: state(f := fluxjobs()["mine"]) == "Running" and f)
    assert runs["status"]["nodeList"].startswith("node-[") and len(runs["status"]["places"].split(",")) >= 1
    assert sluiced.jobs(space)["mine"]["state"] == "running"
    # Its nodes are taken, also for a daemon that starts in the middle.
    sluiced.kill()
    sluiced.start()
    api.create(work.job("other", 2, namespace=space, cpu=4, run=1, scheduler="sluice"))
    ends = datetime.fromisoformat(runs["status"]["startTime"].replace("Z", "+00:00")).timestamp() + 10

    def over():
        placed = [p for p in api.list("pods", space) if p["spec"].get("nodeName")]
        assert not placed or time.time() > ends
        mine = fluxjobs()["mine"]
        return state(mine) == "Finished" and mine

    done = until(over)
    assert done["status"]["startTime"] == runs["status"]["startTime"]
    until(lambda: api.get("jobs", "other", space)["status"].get("succeeded") == 2)
    # One without a duration holds them until it is deleted.
    write(module_cluster, space, "open", nodes=4, cores=4)
    until(lambda: state(fluxjobs()["open"]) == "Running")
    api.create(work.pod("next", cpu=1, namespace=space, run=60, scheduler="sluice"))
    time.sleep(1)
    assert not api.get("pods", "next", space)["spec"].get("nodeName")
    api.delete("fluxjobs", "open", space)
    until(lambda: api.get("pods", "next", space)["spec"].get("nodeName"))
    assert sluiced.metrics()["sluice_audit_differences_total"] == 0


def test_empty_and_broken(sluiced, module_cluster, space, fluxjobs):
    sample = ROOT / ".." / "shared" / "examples" / "fluxqueue" / "samples" / "jobs_v1alpha1_fluxjob.yaml"
    text = sample.read_text() if sample.exists() else "{apiVersion: jobs.converged-computing.org/v1alpha1, kind: FluxJob, metadata: {name: fluxjob-sample}, spec: }"
    body = yaml.safe_load(text)
    body["metadata"]["namespace"] = space
    body["spec"] = body.get("spec") or {}
    module_cluster.admin.create(body)
    write(module_cluster, space, "broken", jobspec="version: [")
    write(module_cluster, space, "huge", nodes=99)
    for name, word in (("fluxjob-sample", "empty"), ("broken", "spec.jobspec"), ("huge", "99 slots")):
        refused = until(lambda n=name: state(fluxjobs()[n]) == "Refused" and fluxjobs()[n], message=name)
        assert refused["status"]["submitStatus"] == "statusError"
        assert word in refused["status"]["message"] and work.condition(refused, "Accepted")["status"] == "False"


def test_named_nodes_and_reservation(sluiced, module_cluster, space, fluxjobs):
    """spec.resources.nodes are the only nodes it is given; spec.reservation waits where starts are promised."""
    names = sorted(n["metadata"]["name"] for n in module_cluster.admin.list("nodes"))
    write(module_cluster, space, "named", nodes=2, cores=3, duration=600, resources={"nodes": names[2:4]}, reservation=True)
    runs = until(lambda: state(f := fluxjobs()["named"]) == "Running" and f)
    assert sorted(runs["status"]["places"].split(",")) == names[2:4]
    # The first two are free, but they are not what the next one named.
    write(module_cluster, space, "next", nodes=1, cores=3, duration=600, resources={"nodes": [names[3]]})
    until(lambda: state(fluxjobs()["next"]) == "Queued")
    module_cluster.admin.delete("fluxjobs", "named", space)
    runs = until(lambda: state(f := fluxjobs()["next"]) == "Running" and f)
    assert runs["status"]["places"] == names[3]
    module_cluster.admin.delete("fluxjobs", "next", space)


def test_a_reservation_where_none_is_given(sluiced, module_cluster, space, fluxjobs):
    sluiced.stop()
    try:
        with Sluiced(module_cluster, {"queues": [{"name": "loose", "policy": "first-fit"}]}):
            write(module_cluster, space, "insists", duration=60, reservation=True)
            refused = until(lambda: state(f := fluxjobs()["insists"]) == "Refused" and f)
            assert 'queue "loose" promises no job a start' in refused["status"]["message"]
    finally:
        module_cluster.admin.delete("fluxjobs", "insists", space, missing_ok=True)
        sluiced.start()


def test_estimate_without_a_promise(sluiced, module_cluster, space, fluxjobs):
    """The status of a user's FluxJob without a promised start shows the start that the forecast gives."""
    nodes = len(module_cluster.admin.list("nodes"))
    write(module_cluster, space, "fills", nodes=nodes, cores=3, duration=600)
    until(lambda: state(fluxjobs().get("fills")) == "Running")
    write(module_cluster, space, "waits", nodes=nodes, cores=3, duration=600)
    waits = until(lambda: state(f := fluxjobs()["waits"]) == "Queued" and f["status"].get("startEstimate") and f)
    assert waits["status"]["position"] == 1
    job = sluiced.jobs(space)["waits"]
    assert not job.get("promised"), job
    for name in ("waits", "fills"):
        module_cluster.admin.delete("fluxjobs", name, space)


def test_after_a_fluxjob(sluiced, module_cluster, space, fluxjobs):
    """Pods start after a FluxJob, by kind and by its labels."""
    api = module_cluster.admin
    write(module_cluster, space, "solve", duration=600, labels={"app": "flux"})
    until(lambda: state(fluxjobs().get("solve")) == "Running")

    def node(name):
        return api.get("pods", name, space)["spec"].get("nodeName")

    for name, after in (("begun", "start:fluxjob/solve"), ("over", "fluxjob/solve"), ("labelled", "app=flux")):
        api.create(work.pod(name, namespace=space, run=600, scheduler="sluice", annotations={"sluice.sh/after": after}))
    until(lambda: node("begun"))
    until(lambda: sluiced.jobs(space).get("over", {}).get("reason", "") == "waits for FluxJob solve to end")
    until(lambda: sluiced.jobs(space).get("labelled", {}).get("reason", "").endswith("(app=flux) to end"))
    assert not node("over") and not node("labelled")
    api.delete("fluxjobs", "solve", space)
    until(lambda: node("over") and node("labelled"))


def test_a_server_without_the_kind(sluiced, module_cluster, hold, fluxjobs):
    """Everything else works, the log says once what is missing, and the kind may come later."""
    api = module_cluster.admin
    sluiced.stop()
    api.delete("customresourcedefinitions", CRD, None)
    until(lambda: CRD not in [c["metadata"]["name"] for c in api.list("customresourcedefinitions")])
    with Sluiced(module_cluster) as d:
        api.create(gated("plain", hold, cpu=2, run=1))
        until(lambda: api.get("jobs", "plain", hold)["status"].get("succeeded") == 2, 30)
        crds(module_cluster)
        api.create(gated("later", hold, cpu=2, run=60))
        until(lambda: state(fluxjobs().get("later-job")) == "Running", 40, "the kind was installed")
        write(module_cluster, hold, "mine", duration=60)
        until(lambda: state(fluxjobs()["mine"]) == "Running", 20, "a user's own")
        lines = d.log.read_text().splitlines()
    sluiced.start()
    assert len([line for line in lines if "no FluxJobs" in line]) == 1
    assert not [line for line in lines if " warn " in line or " error " in line]

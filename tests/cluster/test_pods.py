"""Simulated pods live by their annotations; the custom resources are what they should be."""

import time

import pytest

from .api import ApiError
from .patience import until
from .seed import seed
from .work import condition, job, phase_is, pod, running, wait_phase


def test_pod_runs_as_long_as_it_says(cluster, namespace):
    cluster.admin.create(pod("timed", run=3, namespace=namespace))
    p = cluster.admin.wait("pods", "timed", lambda p: p["status"].get("phase") in ("Running", "Succeeded"), namespace)
    began = int(p["status"]["containerStatuses"][0]["containerID"].removeprefix("sim://")) / 1000

    # Changes in between must not restart the run time, or the pod would never end.
    def ended():
        p = cluster.admin.patch("pods", "timed", {"metadata": {"labels": {"x": str(time.monotonic_ns())}}}, namespace)
        return p["status"]["phase"] == "Succeeded" and p

    p = until(ended, interval=0.5)
    assert time.time() - began >= 3
    state = p["status"]["containerStatuses"][0]["state"]
    assert list(state) == ["terminated"] and state["terminated"]["exitCode"] == 0
    assert condition(p, "Ready")["status"] == "False"
    assert condition(p, "PodScheduled")["status"] == "True"
    assert p["spec"]["nodeName"].startswith("node-")


def test_job_completes_and_server_runs_on(cluster, namespace):
    cluster.admin.create(job("work", pods=4, namespace=namespace))
    cluster.admin.create(pod("server", namespace=namespace, restart="Always"))
    cluster.admin.wait("jobs", "work", lambda j: j["status"].get("succeeded") == 4, namespace)
    p = cluster.admin.wait("pods", "server", phase_is("Running"), namespace)
    assert condition(p, "Ready")["status"] == "True" and p["status"]["podIP"]
    time.sleep(1.5)
    assert cluster.admin.get("pods", "server", namespace)["status"]["phase"] == "Running"


def test_pod_fails(cluster, namespace):
    note = {"sluice.test/exit-code": "3"}
    cluster.admin.create(job("bad", pods=1, namespace=namespace, run=0, annotations=note))
    j = cluster.admin.wait("jobs", "bad", lambda j: condition(j, "Failed").get("status") == "True", namespace)
    assert condition(j, "Failed")["reason"] == "BackoffLimitExceeded"
    (p,) = cluster.admin.list("pods", namespace, labels="job-name=bad")
    assert p["status"]["phase"] == "Failed"
    assert p["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3


def test_kubelet_refuses(cluster, namespace):
    cluster.admin.create(pod("refused", namespace=namespace, annotations={"sluice.test/refuse": "OutOfcpu"}))
    p = cluster.admin.wait("pods", "refused", phase_is("Failed"), namespace)
    assert p["status"]["reason"] == "OutOfcpu" and "containerStatuses" not in p["status"]


def test_deadline_ends_a_pod(cluster, namespace):
    cluster.admin.create(pod("late", namespace=namespace, run=60, activeDeadlineSeconds=1))
    cluster.admin.create(pod("server", namespace=namespace, restart="Always", activeDeadlineSeconds=1))
    cluster.admin.create(pod("early", namespace=namespace, run=0.2, activeDeadlineSeconds=30))
    for name in ("late", "server"):
        p = cluster.admin.wait("pods", name, phase_is("Failed"), namespace)
        assert p["status"]["reason"] == "DeadlineExceeded"
    cluster.admin.wait("pods", "early", phase_is("Succeeded"), namespace)


def test_pods_that_hang(cluster, namespace):
    api = cluster.admin
    for what, run in (("start", 0), ("end", 0), ("stop", 600)):
        api.create(pod(f"hang-{what}", namespace=namespace, run=run, annotations={"sluice.test/hang": what}))
    api.create(pod("slow", namespace=namespace, run=60, annotations={"sluice.test/start-seconds": "3",
                                                                     "sluice.test/stop-seconds": "1.5"}))
    wait_phase(api, ["hang-end", "hang-stop"], "Running", namespace)
    p = api.wait("pods", "slow", lambda p: "nodeName" in p["spec"], namespace)
    assert p["status"]["phase"] == "Pending"
    api.wait("pods", "slow", phase_is("Running"), namespace)
    p = api.get("pods", "hang-start", namespace)
    assert p["status"]["phase"] == "Pending" and p["spec"]["nodeName"]
    assert api.get("pods", "hang-end", namespace)["status"]["phase"] == "Running"
    # Deletion: at once, after its time, never but by force.
    for name in ("hang-start", "hang-end", "hang-stop", "slow"):
        api.delete("pods", name, namespace)
    deleted = time.monotonic()
    for name in ("hang-start", "hang-end"):
        api.wait("pods", name, lambda p: p is None, namespace)
    api.wait("pods", "slow", lambda p: p is None, namespace)
    assert 1.2 < time.monotonic() - deleted
    assert api.get("pods", "hang-stop", namespace)["metadata"]["deletionTimestamp"]
    api.delete("pods", "hang-stop", namespace, grace=0)
    api.wait("pods", "hang-stop", lambda p: p is None, namespace)


def test_deleted_pod_of_a_job_counts_as_failed(cluster, namespace):
    api = cluster.admin
    api.create(job("long", pods=1, namespace=namespace, run=600, backoff=5))
    api.wait("jobs", "long", lambda j: j["status"].get("ready") == 1, namespace)
    (p,) = api.list("pods", namespace)
    api.delete("pods", p["metadata"]["name"], namespace)
    api.wait("pods", p["metadata"]["name"], lambda p: p is None, namespace)
    api.wait("jobs", "long", lambda j: j["status"].get("failed") == 1, namespace)


def test_pod_seeded_as_running_goes_on(cluster, namespace):
    """A pod put into etcd as running is not started again, and ends at its time."""
    made = running(pod("given", run=3, node="node-002", namespace=namespace))
    assert seed(cluster, [made]) == 1
    p = cluster.admin.wait("pods", "given", phase_is("Succeeded"), namespace)
    assert p["status"]["startTime"] == made["status"]["startTime"]
    ended = p["status"]["containerStatuses"][0]
    assert ended["containerID"] == made["status"]["containerStatuses"][0]["containerID"]
    assert "podIP" not in p["status"]  # which a start would have given it


def test_custom_resources(cluster, namespace):
    api = cluster.admin
    for group, has_status in (("scheduling.x-k8s.io", True), ("scheduling.sigs.k8s.io", False)):
        obj = {
            "apiVersion": f"{group}/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": namespace},
            "spec": {"minMember": 4, "scheduleTimeoutSeconds": 600, "minResources": {"cpu": 4, "memory": "1Gi"}},
        }
        api.create(obj)
        kind = f"podgroups.{group}"
        status = {"phase": "Running", "running": 4, "creationTime": "2026-01-02T03:04:05.678901Z"}
        api.patch(kind, "g", {"status": status}, namespace, subresource="status" if has_status else None)
        assert api.get(kind, "g", namespace)["status"] == status
        bad = {**obj, "metadata": {"name": "bad", "namespace": namespace}, "spec": {"minMember": "four"}}
        with pytest.raises(ApiError) as e:
            api.create(bad)
        assert e.value.status == 422
    flux = {
        "apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob",
        "metadata": {"name": "f", "namespace": namespace},
        "spec": {"jobspec": "version: 1", "type": 1, "nodes": 2, "duration": 60, "resources": {"nodes": ["a", "b"]}},
    }
    assert api.create(flux)["spec"] == flux["spec"]
    api.patch("fluxjobs", "f", {"status": {"submitStatus": "statusSubmit", "state": "Queued", "position": 3}}, namespace,
              subresource="status")
    table = cluster.kubectl("get", "fluxjobs", "-n", namespace).split()
    assert table[:5] == ["NAME", "STATE", "POSITION", "START", "NODES"] and table[6:9] == ["f", "Queued", "3"]
    assert "MINMEMBER" in cluster.kubectl("get", "podgroups.scheduling.x-k8s.io", "-n", namespace)

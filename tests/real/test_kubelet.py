"""What kubelets, probes and users do to the pods of a gang."""

import json

import pytest

from cluster.patience import until

from .test_gangs import IMAGE, condition, job, phases, pods, submit

GPU = "example.com/gpu"


def is_ready(pod):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))


def test_the_daemon_is_a_pod(real, sluiced):
    """Our image on a real node, with its account, and with a webhook that the API server reaches."""
    pod = sluiced.pod()
    assert pod["spec"]["nodeName"] == real.nodes[0].name and pod["spec"]["containers"][0]["image"].startswith("sluice.sh/sluice:")
    assert not sluiced.jobs()
    real.namespace("door", labels={"sluice.sh/hold": "true"})
    held = submit(real, "door", job("asked", 1, "true"))
    assert held["spec"]["suspend"] is True, "the webhook held the Job while it was made"
    until(lambda: condition(real, "door", "asked", "Complete"))
    real.admin.delete("namespaces", "door", None)


def test_slow_start_and_probes(real, sluiced, space):
    """Containers that take long to start hold their places; no pod is placed beside them."""
    probes = {"startupProbe": {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1, "failureThreshold": 120},
              "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1}}
    first = [{"name": "first", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "3"]}]
    submit(real, space, job("slow", 4, "sleep 2; touch /tmp/up; sleep 2; touch /tmp/ready; sleep 15", container=probes, initContainers=first))
    until(lambda: len([p for p in pods(real, space, "slow") if p["spec"].get("nodeName")]) == 4)
    submit(real, space, job("next", 4, "true"))

    def both():
        waiting, slow = pods(real, space, "next"), pods(real, space, "slow")
        if any(p["status"].get("phase") in ("Pending", "Running") for p in slow) and not all(map(is_ready, slow)):
            assert not any(p["spec"].get("nodeName") for p in waiting), "a gang that starts slowly has its nodes to itself"
        return len(slow) == 4 and all(map(is_ready, slow))

    until(both)
    until(lambda: condition(real, space, "slow", "Complete") and condition(real, space, "next", "Complete"))


def test_a_container_that_is_not_alive_is_restarted_in_its_place(real, sluiced, space):
    probe = {"livenessProbe": {"exec": {"command": ["false"]}, "initialDelaySeconds": 2, "periodSeconds": 1, "failureThreshold": 1},
             "volumeMounts": [{"name": "s", "mountPath": "/s"}]}
    obj = job("again", 2, "[ ! -e /s/once ] || exit 0; touch /s/once; sleep 600", container=probe, backoff=6, volumes=[{"name": "s", "emptyDir": {}}])
    obj["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    submit(real, space, obj)
    until(lambda: condition(real, space, "again", "Complete"))
    assert [p["status"]["containerStatuses"][0]["restartCount"] for p in pods(real, space, "again")] == [1, 1]


def test_grace_periods_are_waited_for(real, sluiced, space):
    """Deleted pods that take their time keep their room: the next gang comes when they are gone, and no kubelet refuses it."""
    submit(real, space, job("stubborn", 4, "trap 'sleep 6; exit 0' TERM; sleep 600 & wait", terminationGracePeriodSeconds=60))
    until(lambda: phases(real, space, "stubborn") == ["Running"] * 4)
    submit(real, space, job("next", 4, "true"))
    until(lambda: len(pods(real, space, "next")) == 4)
    real.admin.delete("jobs", "stubborn", space, propagation="Background")
    until(lambda: condition(real, space, "next", "Complete") or condition(real, space, "next", "Failed"))
    assert condition(real, space, "next", "Complete") and not pods(real, space, "stubborn")


def set_status(real, node, **amounts):
    """Report a device in the status of the node, as its driver would."""
    parts = [{"op": "add", "path": f"/status/{where}/{k.replace('/', '~1')}", "value": v}
             for where in ("capacity", "allocatable") for k, v in amounts.items()]  # fmt: skip
    real.kubectl("patch", "node", node.name, "--subresource=status", "--type=json", "-p", json.dumps(parts))


def test_extended_resources(real, sluiced, space):
    for n in real.nodes[1:3]:
        set_status(real, n, **{GPU: "1"})
    need = {"resources": {"requests": {"cpu": "100m"}, "limits": {GPU: "1"}}}
    try:
        submit(real, space, job("cards", 2, "sleep 8", container=need))
        until(lambda: phases(real, space, "cards") == ["Running"] * 2)
        assert {p["spec"]["nodeName"] for p in pods(real, space, "cards")} == {n.name for n in real.nodes[1:3]}
        submit(real, space, job("more", 2, "true", container=need))
        until(lambda: condition(real, space, "cards", "Complete") and condition(real, space, "more", "Complete"))
        submit(real, space, job("never", 3, "true", container=need))
        until(lambda: sluiced.jobs().get("never", {}).get("state") == "never", message="three cards are nowhere, and that is said")
        assert not any(p["spec"].get("nodeName") for p in pods(real, space, "never"))
    finally:
        for n in real.nodes[1:3]:
            set_status(real, n, **{GPU: "0"})


def test_taints(real, sluiced, space):
    node = real.nodes[3].name
    real.kubectl("taint", "node", node, "team=red:NoSchedule")
    try:
        submit(real, space, job("kept-out", 4, "true"))
        until(lambda: len(pods(real, space, "kept-out")) == 4)
        submit(real, space, job("let-in", 4, "true", tolerations=[{"key": "team", "operator": "Exists"}]))
        until(lambda: condition(real, space, "let-in", "Complete"))
        assert not any(p["spec"].get("nodeName") for p in pods(real, space, "kept-out"))
    finally:
        real.kubectl("taint", "node", node, "team-")
    until(lambda: condition(real, space, "kept-out", "Complete"))


@pytest.fixture
def held_space(real, space):
    real.kubectl("label", "namespace", space, "sluice.sh/hold=true")
    return space


def test_held_work(real, sluiced, held_space):
    """Jobs and sets for the default scheduler are held on admission and released to their nodes as a whole."""
    obj = job("held", 4, "sleep 2")
    del obj["spec"]["template"]["spec"]["schedulerName"]
    assert submit(real, held_space, obj)["spec"]["suspend"] is True
    until(lambda: condition(real, held_space, "held", "Complete"))
    assert {p["spec"]["nodeName"] for p in pods(real, held_space, "held")} == {n.name for n in real.nodes}
    assert all(p["spec"]["schedulerName"] == "default-scheduler" for p in pods(real, held_space, "held"))
    for kind, name in (("Deployment", "web"), ("StatefulSet", "db")):
        template = job(name, 1, "sleep 600", cpu="300m")["spec"]["template"]
        del template["spec"]["restartPolicy"], template["spec"]["schedulerName"]
        body = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": held_space},
                "spec": {"replicas": 3, "selector": {"matchLabels": {"job": name}}, "template": template}}
        if kind == "StatefulSet":
            body["spec"]["serviceName"] = name
        real.admin.create(body)
        until(lambda name=name: phases(real, held_space, name) == ["Running"] * 3)
    names = {f["spec"].get("name") for f in real.admin.list("fluxjobs", held_space)}
    assert {"held", "web", "db"} <= names, names


def test_the_daemon_is_replaced_while_gangs_run_and_wait(real, sluiced, space):
    """The daemon runs in another pod with the same SQLite file: running work keeps running, waiting work keeps its
    turn."""
    submit(real, space, job("runs", 3, "sleep 20"))
    until(lambda: phases(real, space, "runs") == ["Running"] * 3)
    submit(real, space, job("waits", 4, "true"))
    until(lambda: len(pods(real, space, "waits")) == 4 and "waits" in sluiced.jobs())
    before = {p["metadata"]["uid"] for p in pods(real, space, "runs")}
    sluiced.replace()
    until(lambda: condition(real, space, "runs", "Complete") and condition(real, space, "waits", "Complete"))
    assert {p["metadata"]["uid"] for p in pods(real, space, "runs")} == before

"""Gangs of real containers on real kubelets.  Four nodes of two processors: a pod of 1500m has a node to itself."""

import time

from cluster.patience import until

IMAGE = "localhost/busybox:1"


def job(name, size, script, cpu="1500m", image=IMAGE, annotations=None, backoff=0, **pod):
    container = {
        "name": "main", "image": image, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": cpu, "memory": "32Mi"}},
    }
    container.update(pod.pop("container", {}))
    return {
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {
            "parallelism": size, "completions": size, "completionMode": "Indexed", "backoffLimit": backoff,
            "template": {
                "metadata": {"labels": {"job": name}, "annotations": annotations or {"sluice.sh/duration": "5m"}},
                "spec": {"schedulerName": "sluice", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
                         "containers": [container], **pod},
            },
        },
    }  # fmt: skip


def submit(real, space, obj):
    obj["metadata"]["namespace"] = space
    return real.admin.create(obj)


def pods(real, space, name):
    return [p for p in real.admin.list("pods", space) if p["metadata"].get("labels", {}).get("job") == name]


def phases(real, space, name):
    return sorted(p["status"].get("phase", "") for p in pods(real, space, name))


def condition(real, space, name, kind):
    conditions = real.admin.get("jobs", name, space).get("status", {}).get("conditions", [])
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def terminated(pod):
    return pod["status"]["containerStatuses"][0]["state"].get("terminated", {})


def test_a_gang_starts_together_and_ends(real, sluiced, space):
    submit(real, space, job("together", 4, "sleep 3"))
    until(lambda: phases(real, space, "together") == ["Running"] * 4)
    there = pods(real, space, "together")
    assert {p["spec"]["nodeName"] for p in there} == {n.name for n in real.nodes}, "each pod has a node to itself"
    started = [p["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] for p in there]
    spread = max(map(parse, started)) - min(map(parse, started))
    assert spread <= 5, f"the containers of the gang started {spread} s apart"
    until(lambda: condition(real, space, "together", "Complete"))
    assert all(terminated(p)["exitCode"] == 0 for p in pods(real, space, "together"))


def parse(text):
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


def test_the_second_gang_waits_for_the_whole_machine(real, sluiced, space):
    submit(real, space, job("first", 3, "sleep 600"))
    until(lambda: phases(real, space, "first") == ["Running"] * 3)
    submit(real, space, job("second", 2, "true"))
    until(lambda: len(pods(real, space, "second")) == 2)
    time.sleep(1)
    assert not any(p["spec"].get("nodeName") for p in pods(real, space, "second")), "one node is free, two are asked for"
    real.admin.delete("jobs", "first", space, propagation="Background")
    until(lambda: condition(real, space, "second", "Complete"))


def test_exit_codes_and_out_of_memory(real, sluiced, space):
    submit(real, space, job("fails", 2, "exit $JOB_COMPLETION_INDEX"))
    until(lambda: condition(real, space, "fails", "Failed"))
    assert sorted(terminated(p).get("exitCode") for p in pods(real, space, "fails")) == [0, 1]
    limit = {"container": {"resources": {"requests": {"cpu": "100m", "memory": "16Mi"}, "limits": {"memory": "16Mi"}}}}
    submit(real, space, job("hungry", 1, "tail /dev/zero", **limit))
    until(lambda: condition(real, space, "hungry", "Failed"))
    end = terminated(pods(real, space, "hungry")[0])
    assert (end["reason"], end["exitCode"]) == ("OOMKilled", 137)
    submit(real, space, job("after", 4, "true"))  # whatever failed left its room
    until(lambda: condition(real, space, "after", "Complete"))


def test_an_image_that_cannot_be_pulled_is_told(real, sluiced, space):
    """Such a gang has its nodes and never runs; its status says so. It ends when its Job gets a limit, and its room
    is free again."""
    submit(real, space, job("nosuch", 4, "true", image="localhost/nosuch:1"))
    until(lambda: all(
        p["status"].get("containerStatuses", [{}])[0].get("state", {}).get("waiting", {}).get("reason", "") in ("ErrImagePull", "ImagePullBackOff")
        for p in pods(real, space, "nosuch")) and len(pods(real, space, "nosuch")) == 4)
    until(lambda: "does not start" in sluiced.jobs().get("nosuch", {}).get("reason", ""))
    until(lambda: any(e.get("reason") == "NotStarting" and "group nosuch has its nodes" in e.get("note", e.get("message", ""))
                      for e in real.admin.list("events", space)))
    real.kubectl("patch", "job", "nosuch", "-n", space, "-p", '{"spec": {"activeDeadlineSeconds": 1}}')
    until(lambda: condition(real, space, "nosuch", "Failed"))
    submit(real, space, job("next", 4, "true"))
    until(lambda: condition(real, space, "next", "Complete"))


def test_out_of_cpu_by_the_kubelet(real, sluiced, space):
    """A pod bound behind the scheduler's back to a full node: the kubelet refuses it, and no other pod suffers."""
    submit(real, space, job("full", 4, "sleep 600"))
    until(lambda: phases(real, space, "full") == ["Running"] * 4)
    real.admin.create({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pushy", "namespace": space},
        "spec": {"nodeName": real.nodes[0].name, "restartPolicy": "Never", "containers": [
            {"name": "c", "image": IMAGE, "command": ["true"], "resources": {"requests": {"cpu": "1"}}}]},
    })  # fmt: skip
    until(lambda: real.admin.get("pods", "pushy", space)["status"].get("reason") == "OutOfcpu")
    assert phases(real, space, "full") == ["Running"] * 4
    real.admin.delete("jobs", "full", space, propagation="Background")
    submit(real, space, job("after", 4, "true"))
    until(lambda: condition(real, space, "after", "Complete"))


def test_logs_exec_and_grace(real, sluiced, space):
    submit(real, space, job("talks", 2, "echo hello from $JOB_COMPLETION_INDEX; sleep 600"))
    until(lambda: phases(real, space, "talks") == ["Running"] * 2)
    one = pods(real, space, "talks")[0]["metadata"]["name"]
    until(lambda: "hello from" in real.kubectl("logs", "-n", space, one))
    assert "2" in real.kubectl("exec", "-n", space, one, "--", "sh", "-c", "echo $((1 + 1))")
    real.admin.delete("jobs", "talks", space, propagation="Background")
    until(lambda: not pods(real, space, "talks"))
    submit(real, space, job("after", 4, "true"))
    until(lambda: condition(real, space, "after", "Complete"))


def test_a_kubelet_that_is_restarted_keeps_the_gang(real, sluiced, space):
    submit(real, space, job("steady", 4, "sleep 12"))
    until(lambda: phases(real, space, "steady") == ["Running"] * 4)
    real.nodes[1].kill_kubelet()
    real.nodes[1].start_kubelet()
    until(lambda: condition(real, space, "steady", "Complete"))
    assert all(p["status"]["containerStatuses"][0]["restartCount"] == 0 for p in pods(real, space, "steady"))


def test_statefulsets_and_deployments(real, sluiced, space):
    for kind, name in (("Deployment", "web"), ("StatefulSet", "db")):
        template = job(name, 1, "sleep 600", cpu="500m")["spec"]["template"]
        template["spec"].pop("restartPolicy")
        obj = {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": space},
               "spec": {"replicas": 3, "selector": {"matchLabels": {"job": name}}, "template": template}}
        if kind == "StatefulSet":
            obj["spec"]["serviceName"] = name
        real.admin.create(obj)
        until(lambda name=name: phases(real, space, name) == ["Running"] * 3)


def test_a_node_that_loses_power(real, sluiced, space):
    """The pods of the lost node fail with it; the Job makes new ones, and the gang is whole again elsewhere."""
    submit(real, space, job("survivor", 2, "sleep 600", backoff=6, tolerations=[
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")]))
    until(lambda: phases(real, space, "survivor") == ["Running"] * 2)
    used = {p["spec"]["nodeName"] for p in pods(real, space, "survivor")} - {sluiced.pod()["spec"]["nodeName"]}
    lost = next(n for n in real.nodes if n.name in used)  # not the daemon's: its volume is there and nowhere else
    lost.power_off()
    try:
        until(lambda: sum(p["status"].get("phase") == "Running" and not p["metadata"].get("deletionTimestamp")
                          and p["spec"]["nodeName"] != lost.name for p in pods(real, space, "survivor")) == 2)
    finally:
        lost.up()
    real.admin.delete("jobs", "survivor", space, propagation="Background")
    submit(real, space, job("after", 4, "true"))
    until(lambda: condition(real, space, "after", "Complete"), message="the node takes part again")
    assert lost.name in {p["spec"]["nodeName"] for p in pods(real, space, "after")}

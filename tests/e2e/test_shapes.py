"""The shapes of manifests that must work unchanged, each with real objects; M1 to M22 number them."""

import time

import pytest

from cluster import work
from cluster.audit import Audit
from cluster.gangs import GangWatch

from .conftest import until

CLUSTER = {
    "node_list": [
        {"name": "control-plane", "control-plane": True, "cpu": 4},
        {"name": "node", "count": 8, "cpu": 4, "memory": "16Gi", "per": {"rack": 2, "zone": 4}},
    ]
}

FLUENCE = ("fluence.pod-group", "fluence.group-size")


@pytest.fixture
def pods(module_cluster, space):
    """pods(prefix): the pods of the test's namespace by name."""

    def run(prefix="", namespace=None):
        found = module_cluster.admin.list("pods", namespace or space)
        return {p["metadata"]["name"]: p for p in found if p["metadata"]["name"].startswith(prefix)}

    return run


@pytest.fixture
def placed(pods):
    def run(prefix="", namespace=None):
        return {n: p["spec"]["nodeName"] for n, p in pods(prefix, namespace).items() if p["spec"].get("nodeName")}

    return run


def job(apply, name="j", pods=3, completions=None, cpu="1", run=60, scheduler="fluence", labels="", annotations="",
        job_labels="", job_annotations="", **more):  # fmt: skip
    return apply(
        "job.yaml", NAME=name, PODS=pods, COMPLETIONS=completions or pods, CPU=cpu, RUN=run, SCHEDULER=scheduler,
        LABELS=labels, ANNOTATIONS=annotations, JOB_LABELS=job_labels, JOB_ANNOTATIONS=job_annotations, **more,
    )  # fmt: skip


def stays(test, seconds=1.5):
    """test() holds now and for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert test()
        time.sleep(0.1)


@pytest.mark.parametrize("scheduler", ["fluence", "fluxnetes", "sluice", "FluxionScheduler", "kubeflux"])
def test_m1_bare_pod(sluiced, module_cluster, apply, placed, space, scheduler):
    apply("pod.yaml", NAME="solo", SCHEDULER=scheduler)
    node = until(lambda: placed().get("solo"))
    assert node != "control-plane"
    events = until(lambda: [e for e in module_cluster.admin.list("events", space) if e["reason"] == "Scheduled"])
    assert events[0]["reportingComponent"] == scheduler
    assert events[0]["reportingInstance"].startswith(scheduler + "-")


def test_m2_job_is_a_gang_of_its_parallelism(sluiced, apply, placed, space):
    job(apply, pods=5, cpu="2")
    until(lambda: len(placed()) == 5)
    until(lambda: sluiced.jobs(space)["fluence-group-%s-j" % space]["size"] == 5)


@pytest.mark.parametrize(
    "keys",
    [
        ("scheduling.x-k8s.io/pod-group", "fluence.group-size"),
        ("fluence.pod-group", "fluence.group-size"),
        ("fluence.flux-framework.org/pod-group", "fluence.flux-framework.org/group-size"),
        ("fluxnetes.group-name", "fluxnetes.group-size"),
        ("sluice.sh/group", "sluice.sh/size"),
    ],
)
@pytest.mark.parametrize("where", ["labels", "annotations", "job_labels", "job_annotations"])
def test_m3_every_spelling_everywhere(sluiced, apply, space, placed, keys, where):
    job(apply, pods=2, **{where: f'{keys[0]}: crew, {keys[1]}: "2"'})
    until(lambda: len(placed()) == 2)
    assert sluiced.jobs(space)["crew"]["minSize"] == 2


@pytest.fixture
def filled(module_cluster, space):
    """filled(node, ...): takes 3 of the 4 cpus of these nodes; free(node, ...) gives them back."""

    def take(*nodes):
        for node in nodes:
            module_cluster.admin.create(work.pod(
                f"fill-{node}", cpu=3, namespace=space, run=600, scheduler="fluence",
                nodeSelector={"kubernetes.io/hostname": node}))  # fmt: skip
        until(lambda: all(module_cluster.admin.get("pods", f"fill-{n}", space)["spec"].get("nodeName") for n in nodes))

    def free(*nodes):
        for node in nodes:
            module_cluster.admin.delete("pods", f"fill-{node}", space, grace=0)

    take.free = free
    return take


def test_m4_size_below_the_number_of_pods(sluiced, apply, placed, space, filled):
    # Four nodes are free and five pods of ten must start together: so none does.
    filled("node-000", "node-001", "node-002", "node-003")
    job(apply, "ten", pods=10, cpu="3", labels='fluence.pod-group: crew, fluence.group-size: "5"', run=3)
    until(lambda: sluiced.jobs(space).get("crew", {}).get("minSize") == 5)
    stays(lambda: not placed("ten"))
    # With a fifth node five start, and no pod waits for the other five.
    filled.free("node-000")
    until(lambda: len(placed("ten")) >= 5, message="five of ten")
    until(lambda: len(placed("ten")) == 10, message="the rest follows")


def test_m5_one_gang_across_objects(sluiced, apply, placed, space):
    labels = 'fluence.pod-group: crew, fluence.group-size: "4"'
    job(apply, "a", pods=2, labels=labels)
    stays(lambda: not placed())
    job(apply, "b", pods=2, labels=labels)
    until(lambda: len(placed()) == 4)


def test_m6_equal_names_in_two_namespaces(sluiced, module_cluster, apply, placed, space):
    other = space + "-b"
    module_cluster.namespace(other)
    labels = 'fluence.pod-group: crew, fluence.group-size: "4"'
    try:
        job(apply, "a", pods=2, labels=labels)
        job(apply, "a", pods=2, labels=labels, namespace=other)
        stays(lambda: not placed() and not placed(namespace=other))
    finally:
        module_cluster.admin.delete("namespaces", other, None)


@pytest.mark.parametrize(
    "api,label",
    [
        ("scheduling.x-k8s.io", "scheduling.x-k8s.io/pod-group"),
        ("scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io"),
    ],
)
def test_m7_podgroup_of_the_user(sluiced, module_cluster, apply, placed, space, api, label):
    apply("podgroup.yaml", API=api)
    job(apply, "a", pods=2, labels=f'{label}: solver, fluence.group-size: "2"')
    stays(lambda: not placed())
    job(apply, "b", pods=1, labels=f"{label}: solver")
    until(lambda: len(placed()) == 3)
    path = f"/apis/{api}/v1alpha1/namespaces/{space}/podgroups/solver"
    until(lambda: module_cluster.admin.request("GET", path).get("status", {}).get("phase") == "Running")


def test_m8_sets(sluiced, module_cluster, apply, placed, space):
    apply("sets.yaml")
    for prefix in ("web", "copies", "ordered"):
        until(lambda p=prefix: len(placed(p)) == 3, message=prefix)
    # scaling up, to zero, and back
    module_cluster.admin.patch("replicasets", "copies", {"spec": {"replicas": 5}}, space)
    until(lambda: len(placed("copies")) == 5)
    module_cluster.admin.patch("replicasets", "copies", {"spec": {"replicas": 0}}, space)
    until(lambda: not placed("copies"))
    module_cluster.admin.patch("replicasets", "copies", {"spec": {"replicas": 2}}, space)
    until(lambda: len(placed("copies")) == 2)


def test_m9_workers_gang_launcher_untouched(sluiced, module_cluster, placed, space):
    # As an MPIJob makes them: a controller we do not know, workers in a group, a launcher for the default scheduler.
    owner = module_cluster.admin.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mpi", "namespace": space}}
    )
    ref = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "mpi", "uid": owner["metadata"]["uid"], "controller": True}]

    def member(name, **more):
        p = work.pod(name, namespace=space, run=60, **more)
        p["metadata"]["ownerReferences"] = ref
        return p

    keys = {"scheduling.x-k8s.io/pod-group": "mpi", "fluence.group-size": "3"}
    module_cluster.admin.create(member("launcher"))
    for i in range(2):
        module_cluster.admin.create(member(f"worker-{i}", scheduler="fluence", labels=keys))
    until(lambda: placed("launcher"))
    stays(lambda: not placed("worker"))
    module_cluster.admin.create(member("worker-2", scheduler="fluence", labels=keys))
    until(lambda: len(placed("worker")) == 3)


def test_m10_jobs_of_a_cronjob(sluiced, module_cluster, placed, space):
    inner = work.job("tick", pods=2, namespace=space, run=1, scheduler="fluence")
    module_cluster.admin.create(
        {
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick", "namespace": space},
            "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": inner["spec"]}},
        }
    )  # fmt: skip
    module_cluster.kubectl("create", "job", "-n", space, "tick-now", "--from=cronjob/tick")
    until(lambda: len(placed("tick-now")) == 2)


def test_m11_later_waves_do_not_wait_again(sluiced, module_cluster, apply, placed, pods, space):
    # The Job holds four of eight nodes for three waves; a gang that needs all eight came after it.
    job(apply, "waves", pods=4, completions=12, cpu="3", run=2)
    until(lambda: len(placed("waves")) >= 4)
    job(apply, "large", pods=8, cpu="3", run=2)
    until(lambda: len(placed("waves")) == 12, message="all three waves")
    until(lambda: len(placed("large")) == 8)

    def bound(prefix):
        return [c["lastTransitionTime"] for p in pods(prefix).values() for c in p["status"]["conditions"]
                if c["type"] == "PodScheduled" and c["status"] == "True"]  # fmt: skip

    # Every wave lasts two seconds, so seconds tell who came first.
    assert max(bound("waves")) < min(bound("large")), "a later wave stood behind the gang that came after its Job"


def test_m13_other_gates_are_left_alone(sluiced, module_cluster, placed, space):
    gang = work.gang("held", 2, namespace=space, run=60, scheduler="fluence")
    gang[1]["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    for p in gang:
        module_cluster.admin.create(p)
    stays(lambda: not placed())
    module_cluster.admin.patch("pods", "held-1", [{"op": "remove", "path": "/spec/schedulingGates/0"}], space, type="json")
    until(lambda: len(placed()) == 2)


def test_m14_deadline_is_the_duration(sluiced, module_cluster, placed, space):
    module_cluster.admin.create(
        work.pod("short", namespace=space, run=60, scheduler="fluxnetes", activeDeadlineSeconds=300)
    )
    until(lambda: placed("short"))
    [found] = sluiced.jobs(space).values()
    assert found["limitSeconds"] == 300


def test_m15_unsatisfiable_is_said_and_tried_again(sluiced, module_cluster, apply, placed, pods, space):
    job(apply, "huge", pods=2, cpu="20", scheduler="fluxnetes")
    until(lambda: len(pods()) == 2)
    begun = time.monotonic()
    condition = until(
        lambda: [
            c for p in pods().values() for c in p["status"].get("conditions", [])
            if c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable"
        ], message="condition",
    )  # fmt: skip
    assert time.monotonic() - begun < 20, "a moment; how long is measured elsewhere"
    assert "cpu" in condition[0]["message"]
    events = until(lambda: [e for e in module_cluster.admin.list("events", space) if e["reason"] == "FailedScheduling"])
    assert events[0]["reportingComponent"] == "fluxnetes"
    # Who asks about the Job is told there, too.
    until(lambda: [e for e in module_cluster.admin.list("events", space) if e["reason"] == "FailedScheduling"
                   and e["involvedObject"]["kind"] == "Job" and e["involvedObject"]["name"] == "huge" and "cpu" in e["message"]],
          message="an event on the Job")  # fmt: skip
    until(lambda: "FailedScheduling" in module_cluster.kubectl("describe", "job", "-n", space, "huge"), message="kubectl describe job")
    assert len(pods()) == 2, "nothing is deleted"
    module_cluster.add_nodes({"name": "big", "count": 2, "cpu": 24})
    try:
        until(lambda: sorted(placed().values()) == ["big-0", "big-1"] or len(placed()) == 2)
    finally:
        module_cluster.admin.delete_all("pods", space, grace=0)
        for node in [n["metadata"]["name"] for n in module_cluster.admin.list("nodes")]:
            if node.startswith("big"):
                module_cluster.remove_node(node)


def test_m16_jobspec_zone(sluiced, module_cluster, apply, placed, space, filled):
    zones = {n["metadata"]["name"]: n["metadata"]["labels"]["topology.kubernetes.io/zone"]
             for n in module_cluster.admin.list("nodes") if "topology.kubernetes.io/zone" in n["metadata"]["labels"]}  # fmt: skip
    first, last = "node-000", "node-007"
    assert zones[first] != zones[last]

    def used(prefix):
        return {zones[n] for n in placed(prefix).values()}

    # Two zones of four nodes with three free each: four pods of a node each fit, but into no single zone.
    filled(first, last)
    job(apply, "anywhere", pods=4, cpu="3", run=1)
    until(lambda: len(placed("anywhere")) == 4)
    assert used("anywhere") == {zones[first], zones[last]}, "the same gang without the wish takes both zones"
    until(lambda: all(p["status"]["phase"] == "Succeeded" for p in module_cluster.admin.list("pods", space)
                      if p["metadata"]["name"].startswith("anywhere")))  # fmt: skip
    job(apply, "near", pods=4, cpu="3", labels="my.jobspec: zone")
    until(lambda: [j for j in sluiced.jobs(space).values() if "near" in j["name"]])
    stays(lambda: not placed("near"))
    # The zone that comes last by name has room first.
    filled.free(last)
    until(lambda: len(placed("near")) == 4)
    assert used("near") == {zones[last]}


def test_m19_constraints(sluiced, module_cluster, placed, space):
    admin = module_cluster.admin
    module_cluster.label_node("node-003" if any(n["metadata"]["name"] == "node-003" for n in admin.list("nodes")) else "node-3",
                              {"disk": "ssd"})  # fmt: skip
    [ssd] = [n["metadata"]["name"] for n in admin.list("nodes", labels="disk=ssd")]
    admin.create(work.pod("selected", namespace=space, run=60, scheduler="fluence", nodeSelector={"disk": "ssd"}))
    until(lambda: placed("selected"))
    assert placed("selected")["selected"] == ssd
    term = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    for p in work.gang("away", 3, namespace=space, run=60, scheduler="fluence", affinity=affinity):
        admin.create(p)
    until(lambda: len(placed("away")) == 3)
    assert ssd not in placed("away").values()
    # host ports: one per node
    ports = [{"name": "main", "image": "simulated", "ports": [{"containerPort": 80, "hostPort": 18080}]}]
    for p in work.gang("port", 4, namespace=space, run=60, scheduler="fluence"):
        p["spec"]["containers"] = ports
        admin.create(p)
    until(lambda: len(placed("port")) == 4)
    assert len(set(placed("port").values())) == 4
    # what only the default scheduler decides is refused with a reason
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"a": "b"}}}]}  # fmt: skip
    admin.create(work.pod("anti", namespace=space, run=60, scheduler="fluence", affinity={"podAntiAffinity": rule}))
    until(lambda: [e for e in admin.list("events", space)
                   if e["reason"] == "FailedScheduling" and "anti-affinity" in e["message"]])  # fmt: skip


def test_m19_taints_and_cordon(sluiced, module_cluster, placed, space):
    admin = module_cluster.admin
    names = [n["metadata"]["name"] for n in admin.list("nodes") if n["metadata"]["name"].startswith("node")]
    for n in names[1:]:
        module_cluster.cordon(n)
    module_cluster.taint_node(names[0], "worker=true:NoSchedule")
    try:
        until(lambda: all(sluiced.nodes()[n]["state"] == "cordoned" for n in names[1:]))
        # One watch tells of both: the taint was before the label, the label before the place.
        module_cluster.label_node(names[0], {"known": "yes"})
        tolerate = [{"key": "worker", "operator": "Exists", "effect": "NoSchedule"}]
        admin.create(work.pod("worker", namespace=space, run=600, scheduler="fluence", tolerations=tolerate, nodeSelector={"known": "yes"}))
        until(lambda: placed("worker"))
        assert placed("worker")["worker"] == names[0]
        admin.create(work.pod("plain", namespace=space, run=60, scheduler="fluence"))
        stays(lambda: not placed("plain"))
    finally:
        module_cluster.label_node(names[0], {"known": None})
        module_cluster.taint_node(names[0])
        for n in names[1:]:
            module_cluster.cordon(n, False)
    until(lambda: placed("plain"))


def test_m20_long_and_generated_names(sluiced, module_cluster, apply, placed, space):
    job(apply, "n" * 60, pods=2)
    module_cluster.admin.create(
        {**work.pod("x", namespace=space, run=60, scheduler="fluence"), "metadata": {"generateName": "made-", "namespace": space}}
    )  # fmt: skip
    until(lambda: len(placed()) == 3)
    assert all(len(name) <= 63 for name in sluiced.jobs(space))


def test_m21_strange_text_hurts_nobody(sluiced, module_cluster, placed, space):
    notes = {"sluice.sh/note": "Robert'); DROP TABLE pods;-- \"\\ \u2603 \U0001f600", "example.com/large": "x" * 100000}
    module_cluster.admin.create(
        work.pod("strange", namespace=space, run=60, scheduler="fluxnetes", annotations=notes)
    )
    until(lambda: placed("strange"))


def test_m22_default_scheduler_beside(sluiced, module_cluster, placed, space):
    admin = module_cluster.admin
    with GangWatch(admin, space) as watch:
        for i in range(16):
            admin.create(work.pod(f"plain-{i}", cpu=1, namespace=space, run=2))
        for g in range(6):
            for p in work.gang(f"gang-{g}", 4, cpu=2, namespace=space, run=1, scheduler="fluence"):
                admin.create(p)
        watch.wait(lambda w: len(w.finished()) == 6)
        until(lambda: len(placed("plain")) == 16)
        assert watch.longest_partial() < 20, "while its bindings are on their way"
    assert not work.overbooked(admin)
    assert not Audit(module_cluster.audit_log).bound_twice(space)


def test_bad_objects_are_named(sluiced, module_cluster, placed, space):
    admin = module_cluster.admin
    bad = {
        "size": {"fluence.group-size": "many"},
        "absurd": {"fluence.group-size": "999999999999"},
        "moon": {"sluice.sh/topology": "moon"},
    }
    for name, labels in bad.items():
        admin.create(work.pod(name, namespace=space, run=60, scheduler="fluence", labels=labels))
    admin.create(work.pod("good", namespace=space, run=60, scheduler="fluence"))
    until(lambda: placed("good"))
    for name in bad:
        until(lambda n=name: [e for e in admin.list("events", space)
                              if e["reason"] == "FailedScheduling" and e["involvedObject"]["name"] == n], message=name)  # fmt: skip
    assert list(placed()) == ["good"]

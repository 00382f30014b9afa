"""What pods say about the inside of nodes and who may share them: Sluice and the default scheduler agree.

Each test lets Sluice place pods, then asks the default scheduler about the same nodes: a pod that Sluice has no room for
stays pending there, too, and one that Sluice would take is taken."""

import copy

import pytest

from cluster import work

from .conftest import ZONES, serve_kinds, until
from .daemon import Sluiced

CLUSTER = {"node_list": [{"name": "n", "count": 4, "cpu": 8, "memory": "32Gi"}]}
SETTINGS = {"status": {"interval": "1s", "audit": "2s"}}
DRIVER = "disk.example.com"


@pytest.fixture(scope="module")
def sluiced(module_cluster):
    with Sluiced(module_cluster, SETTINGS) as d:
        yield d
        assert d.process.poll() is None, d.tail(40)
        assert d.metrics()["sluice_pods_refused_total"] == 0


@pytest.fixture
def admin(module_cluster, sluiced, space):
    yield module_cluster.admin
    for kind in ("jobs", "pods"):
        module_cluster.admin.delete_all(kind, space, grace=0)
    until(lambda: not module_cluster.admin.list("pods", space))


def placed(admin, space, prefix=""):
    """Name and node of the pods that have one."""
    return {
        p["metadata"]["name"]: p["spec"]["nodeName"] for p in admin.list("pods", space)
        if p["spec"].get("nodeName") and p["metadata"]["name"].startswith(prefix)
    }  # fmt: skip


def refused(admin, space, name):
    """The default scheduler's reason for not placing a pod; "" until it has tried."""
    for c in admin.get("pods", name, space).get("status", {}).get("conditions", []):
        if c["type"] == "PodScheduled" and c["status"] == "False":
            return c.get("message", "")
    return ""


def on(node):
    return {"nodeSelector": {"kubernetes.io/hostname": node}}


def apart(app):
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_anti_affinity_by_host(admin, sluiced, space):
    admin.create_many(work.gang("a", 4, namespace=space, scheduler="sluice", run=300, labels={"app": "a"}, **apart("a")))
    until(lambda: len(placed(admin, space, "a")) == 4)
    assert len(set(placed(admin, space, "a").values())) == 4
    # a fifth has no host left, by either scheduler
    admin.create(work.pod("fifth", namespace=space, labels={"app": "a"}, run=300, **apart("a")))
    until(lambda: "anti-affinity" in refused(admin, space, "fifth"))
    admin.create(work.pod("late", namespace=space, scheduler="sluice", labels={"app": "a"}, run=300, **apart("a")))
    until(lambda: "anti-affinity" in sluiced.jobs(space).get("late", {}).get("reason", ""))
    # a launcher that keeps away from workers, in one gang
    workers = work.gang("g", 4, namespace=space, scheduler="sluice", run=300, labels={"role": "w"})
    for p in workers:
        p["metadata"]["labels"]["app"] = "worker"
    workers[0]["metadata"]["labels"]["app"] = "launcher"
    workers[0]["spec"].update(apart("worker"))
    admin.create_many(workers)
    until(lambda: len(placed(admin, space, "g")) == 4)
    nodes = placed(admin, space, "g")
    launcher = nodes.pop(workers[0]["metadata"]["name"])
    assert launcher not in nodes.values()


def volume(admin, space, name, mode="ReadWriteOnce"):
    pv = f"{space}-{name}"
    admin.create({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": pv},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": [mode], "storageClassName": "",
                 "persistentVolumeReclaimPolicy": "Retain", "csi": {"driver": DRIVER, "volumeHandle": pv},
                 "claimRef": {"namespace": space, "name": name}},
    })  # fmt: skip
    admin.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": space},
                  "spec": {"accessModes": [mode], "storageClassName": "", "volumeName": pv,
                           "resources": {"requests": {"storage": "1Gi"}}}})  # fmt: skip
    until(lambda: admin.get("persistentvolumeclaims", name, space)["status"].get("phase") == "Bound")
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


@pytest.fixture
def limits(admin):
    """limits(node, count): how many volumes of the driver the node takes."""
    made = []

    def run(node, count):
        admin.apply({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
                     "spec": {"drivers": [{"name": DRIVER, "nodeID": node, "topologyKeys": None,
                                           "allocatable": {"count": count}}]}})  # fmt: skip
        made.append(node)

    yield run
    for node in made:
        admin.delete("csinodes", node, None, missing_ok=True)


def test_attach_limits(admin, sluiced, space, limits):
    for node, count in (("n-000", 2), ("n-001", 3), ("n-002", 0), ("n-003", 0)):
        limits(node, count)
    gang = work.gang("a", 4, namespace=space, scheduler="sluice", run=300)
    for p in gang:
        p["spec"].update(volume(admin, space, p["metadata"]["name"]))
    admin.create_many(gang)
    until(lambda: len(placed(admin, space, "a")) == 4)
    assert sorted(placed(admin, space, "a").values()) in (["n-000"] * 2 + ["n-001"] * 2, ["n-000"] + ["n-001"] * 3)
    # One place is left.  The default scheduler takes it, and then has none, as Sluice has none.
    admin.create(work.pod("other", namespace=space, run=300, **volume(admin, space, "other")))
    until(lambda: placed(admin, space, "other"))
    admin.create(work.pod("more", namespace=space, run=300, **volume(admin, space, "more")))
    until(lambda: "max volume count" in refused(admin, space, "more"))
    admin.create(work.pod("mine", namespace=space, scheduler="sluice", run=300, **volume(admin, space, "mine")))
    until(lambda: f"volumes of {DRIVER}" in sluiced.jobs(space).get("mine", {}).get("reason", ""))
    # Two pods that share a volume take one place: the volume of a pod that is there is attached already.
    node = placed(admin, space, "other")["other"]
    shared = admin.get("pods", "other", space)["spec"]["volumes"]
    shared = [v for v in shared if "persistentVolumeClaim" in v]
    admin.create(work.pod("beside", namespace=space, run=300, volumes=shared, **on(node)))
    until(lambda: placed(admin, space, "beside"))
    admin.delete("pods", "more", space, grace=0)
    admin.delete("pods", "other", space, grace=0)
    assert not placed(admin, space, "mine")
    admin.delete("pods", "beside", space, grace=0)
    until(lambda: placed(admin, space, "mine"))


def test_read_write_once_pod(admin, sluiced, space):
    once = volume(admin, space, "once", "ReadWriteOncePod")
    admin.create(work.pod("first", namespace=space, run=300, **once))
    until(lambda: placed(admin, space, "first"))
    admin.create(work.pod("second", namespace=space, scheduler="sluice", run=300, **once))
    until(lambda: "ReadWriteOncePod" in sluiced.jobs(space).get("second", {}).get("reason", ""))
    admin.create_many(work.gang("two", 2, namespace=space, scheduler="sluice", run=300, **once))
    until(lambda: "never run together" in sluiced.jobs(space).get("two", {}).get("reason", ""))
    admin.delete("pods", "first", space, grace=0)
    until(lambda: placed(admin, space, "second"))
    admin.create(work.pod("third", namespace=space, run=300, **once))
    until(lambda: "ReadWriteOncePod" in refused(admin, space, "third"))


# ---- NUMA zones ----


@pytest.fixture
def zones(admin):
    """zones(node, cpus): the node publishes a NUMA zone for each number of cpus.  The kind comes and goes with the test,
    while the daemon runs."""
    serve_kinds(admin, [ZONES])

    def run(node, cpus):
        amounts = [{"name": "cpu", "capacity": str(n), "allocatable": str(n), "available": str(n)} for n in cpus]
        admin.apply({
            "apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology", "metadata": {"name": node},
            "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"},
                           {"name": "topologyManagerScope", "value": "pod"}],
            "zones": [{"name": f"node-{i}", "type": "Node", "resources": [a]} for i, a in enumerate(amounts)],
        })  # fmt: skip

    yield run
    admin.delete("customresourcedefinitions", ZONES["metadata"]["name"], None)
    admin.resources = None


def pinning(*pods):
    """Pods with limits that equal their requests: the kubelet gives them cpus of their own."""
    for p in pods:
        for c in p["spec"]["containers"]:
            c["resources"]["limits"] = dict(c["resources"]["requests"])
    return list(pods)


def test_numa_zones(admin, sluiced, space, zones):
    """A node of 8 cpus in zones of 3 and 5 holds three pods of 2 that pin cpus, and none of 6."""
    # A pod of 6 waits for cpus until the daemon has seen the kind, for which it looks every ten seconds.
    for i in range(4):
        admin.create(work.pod(f"fill-{i}", 3, namespace=space, run=300, node=f"n-00{i}"))
    until(lambda: sluiced.nodes()["n-003"]["resources"]["cpu"]["free"] == 5000)
    admin.create_many(pinning(work.pod("six", 6, namespace=space, scheduler="sluice", run=300)))
    until(lambda: "cpu" in sluiced.jobs(space).get("six", {}).get("reason", ""))
    for i in range(4):
        zones(f"n-00{i}", (3, 5))
    until(lambda: "NUMA zones too small on 4" in sluiced.jobs(space)["six"]["reason"], 60)
    admin.delete_all("pods", space, grace=0)
    until(lambda: not admin.list("pods", space))
    gang = pinning(*work.gang("a", 12, cpu=2, namespace=space, scheduler="sluice", run=300))
    admin.create_many(gang)
    until(lambda: len(placed(admin, space, "a")) == 12)
    nodes = sorted(placed(admin, space, "a").values())
    assert nodes == sorted(f"n-00{i}" for i in range(4) for _ in range(3))
    # Each node has 2 cpus left, one in each zone.
    admin.create_many(pinning(work.pod("b", 2, namespace=space, scheduler="sluice", run=300)))
    until(lambda: "NUMA zones" in sluiced.jobs(space).get("b", {}).get("reason", ""))
    admin.create(work.pod("c", 2, namespace=space, scheduler="sluice", run=300))
    until(lambda: placed(admin, space, "c"))
    assert not placed(admin, space, "b")
    # A node that no longer publishes zones restricts no pod.
    free = next(f"n-00{i}" for i in range(4) if f"n-00{i}" != placed(admin, space, "c")["c"])
    admin.delete("noderesourcetopologies", free, None)
    until(lambda: placed(admin, space, "b") == {"b": free})


# ---- the pod as the API server makes it ----


def container(name="main", **resources):
    return {"name": name, "image": "simulated", "resources": resources}


#: What a pod says, and how many millicores it takes by the rules of Kubernetes, worked out by hand.
FORMS = {
    "requests": ({"containers": [container(requests={"cpu": "2"})]}, 2000),
    "limits only": ({"containers": [container(limits={"cpu": "3"})]}, 3000),
    "init containers one after the other": (
        {"initContainers": [container("i1", requests={"cpu": "5"}), container("i2", requests={"cpu": "1"})],
         "containers": [container(requests={"cpu": "1"}), container("b", requests={"cpu": "1"})]}, 5000),
    "a sidecar beside the containers": (
        {"initContainers": [{**container("s", requests={"cpu": "2"}), "restartPolicy": "Always"}],
         "containers": [container(requests={"cpu": "1"})]}, 3000),
    "an init container after a sidecar": (
        {"initContainers": [{**container("s", requests={"cpu": "2"}), "restartPolicy": "Always"},
                            container("i", requests={"cpu": "4"})],
         "containers": [container(requests={"cpu": "1"})]}, 6000),
    "pod-level resources": (
        {"resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "6"}}, "containers": [container(requests={"cpu": "1"})]}, 4000),
    "overhead of a RuntimeClass": ({"runtimeClassName": "heavy", "containers": [container(requests={"cpu": "1"})]}, 2500),
    "the default of a LimitRange": ({"containers": [container()]}, 1700),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_both_schedulers_count_alike(admin, sluiced, space, form):
    """On a node with just enough room both place the pod; with a millicore less neither does."""
    spec, cpu = FORMS[form]
    if "RuntimeClass" in form:
        admin.apply({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "h",
                     "overhead": {"podFixed": {"cpu": "1500m"}}})  # fmt: skip
    if "LimitRange" in form:
        admin.create({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": space},
                      "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1700m"}}]}})  # fmt: skip

    def form_of(name, scheduler, node):
        p = work.pod(name, namespace=space, scheduler=scheduler, run=300, **on(node))
        p["spec"].update(copy.deepcopy(spec))
        return p

    fill = [("n-000", 8000 - cpu), ("n-001", 8000 - cpu), ("n-002", 8001 - cpu), ("n-003", 8001 - cpu)]
    for i, (node, taken) in enumerate(fill):
        admin.create(work.pod(f"fill-{i}", cpu=f"{taken}m", namespace=space, run=300, node=node))
    until(lambda: sluiced.nodes()["n-003"]["resources"]["cpu"]["free"] == cpu - 1)
    for name, scheduler, node in (("d-fits", None, "n-000"), ("s-fits", "sluice", "n-001"), ("d-not", None, "n-002"), ("s-not", "sluice", "n-003")):
        admin.create(form_of(name, scheduler, node))
    until(lambda: placed(admin, space, "d-fits") and placed(admin, space, "s-fits"))
    until(lambda: "Insufficient cpu" in refused(admin, space, "d-not"))
    until(lambda: "cpu" in sluiced.jobs(space).get("s-not", {}).get("reason", ""))
    assert not placed(admin, space, "d-not") and not placed(admin, space, "s-not")
    assert not work.overbooked(admin)
    until(lambda: sluiced.nodes()["n-001"]["resources"]["cpu"]["free"] == 0)


def test_host_ports_of_others(admin, sluiced, space):
    ports = {"containers": [{"name": "main", "image": "simulated", "ports": [{"containerPort": 80, "hostPort": 18180}]}]}
    for i in range(3):
        p = work.pod(f"other-{i}", namespace=space, run=300, **on(f"n-00{i}"))
        p["spec"].update(copy.deepcopy(ports))
        admin.create(p)
    until(lambda: len(placed(admin, space, "other")) == 3)
    for name, scheduler in (("mine", "sluice"), ("more", "sluice")):
        p = work.pod(name, namespace=space, scheduler=scheduler, run=300)
        p["spec"].update(copy.deepcopy(ports))
        admin.create(p)
    until(lambda: len(placed(admin, space, "m")) == 1)
    assert set(placed(admin, space, "m").values()) == {"n-003"}
    p = work.pod("default", namespace=space, run=300)
    p["spec"].update(copy.deepcopy(ports))
    admin.create(p)
    until(lambda: "free ports" in refused(admin, space, "default"))
    admin.delete("pods", "default", space, grace=0)
    admin.delete("pods", "other-1", space, grace=0)
    until(lambda: len(placed(admin, space, "m")) == 2)

"""docs/install.md as typed: each block of commands on the page, in its order, on a cluster of real nodes, on a Debian with systemd beside it, and in the sources.

What a reader does between two blocks is done here as well: bring an image to the nodes, have a volume, have a PostgreSQL, copy files to another machine.
"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from store.postgres import Postgres

from chart import chart
from cluster.cluster import kubectl
from cluster.patience import until
from cluster.real import GATE, RealCluster
from e2e.daemon import ROOT

from .debian import Debian

PAGE = (ROOT / "docs" / "install.md").read_text()
NAMESPACE = "sluice-system"
USER = 65532  # of the image
COMPILED = ("build-release", "dist")
UNDER_A_MINUTE = 60
typed = []


def blocks(section):
    """The commands below a heading, up to the next one."""
    text = re.search(rf"^##+ {re.escape(section)}\n(.*?)(?=^##+ |\Z)", PAGE, re.S | re.M)[1]
    return re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The repository as a reader has it; what is compiled already is taken from ours."""
    folder = tmp_path_factory.mktemp("sluice")
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True).stdout
    packed = subprocess.run(["tar", "-C", ROOT, "--null", "-T", "-", "-cf", "-"], input=files, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-C", folder, "-xf", "-"], input=packed, check=True)
    git = subprocess.run(["git", "-C", ROOT, "rev-parse", "--absolute-git-dir"], capture_output=True, text=True, check=True).stdout.strip()
    (folder / ".git").write_text(f"gitdir: {git}\n")
    (ROOT / "dist").mkdir(exist_ok=True)
    for name in COMPILED:
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.fixture(scope="module")
def cluster():
    with RealCluster(f"page-{os.getpid()}", real=2) as c:
        chart.bare(c)
        until(lambda: not any(n["metadata"]["name"] == NAMESPACE for n in c.admin.list("namespaces")), message="nothing of Sluice is there")
        c.before = everything(c)
        yield c


@pytest.fixture(scope="module")
def type_(cluster, sources):
    """type_(block): run it in the sources, with the cluster's kubeconfig and helm and kubectl on the path."""
    tools = sources.parent / "tools"
    tools.mkdir()
    (tools / "helm").symlink_to(chart.helm_program())
    if not shutil.which("kubectl"):
        (tools / "kubectl").symlink_to(kubectl())
    env = {**cluster.env(), "PATH": f"{tools}:{os.environ['PATH']}"}

    def run(block, **changes):
        typed.append(block)
        for old, new in changes.get("but", {}).items():
            assert old in block
            block = block.replace(old, new)
        done = subprocess.run(["sh", "-ec", block], cwd=sources, env=env, capture_output=True, text=True)
        assert done.returncode == 0, f"{block}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    return run


def everything(cluster):
    """The names of all objects, but those that come and go by themselves."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    kinds = [k for k in kinds if k.partition(".")[0] not in ("events", "componentstatuses", "endpoints", "endpointslices", "leases", "apiservices")]
    return set(cluster.kubectl("get", ",".join(kinds), "-A", "--ignore-not-found", "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{'\\n'}{end}").split())


def volume(cluster):
    """What a cluster with a storage class makes for the claim of the chart."""
    home = cluster.nodes[0]
    store = home.folder / "lib" / "sluice-store"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir()
    os.chown(store, USER, USER)
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [home.name]}
    cluster.admin.create({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "sluice-store"},
        "spec": {"capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
                 "hostPath": {"path": "/var/lib/sluice-store", "type": "Directory"},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}},
    })  # fmt: skip


def no_volume(cluster):
    cluster.admin.delete("persistentvolumes", "sluice-store", None)


class ClusterPostgres(Postgres):
    """A PostgreSQL that the pods reach: in the network of the cluster."""

    listen = "*"

    def __init__(self, cluster):
        super().__init__()
        self.user = ["nsenter", f"--net=/run/netns/{cluster.namespace_name}", *self.user]
        with open(self.data / "pg_hba.conf", "a") as f:
            f.write("host all all 10.77.0.0/16 trust\n")

    def ready(self):
        return subprocess.run([*self.user, self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0


def deployed(cluster, replicas=1):
    d = cluster.admin.get("deployments", "sluice", NAMESPACE)
    s = d.get("status", {})
    return s.get("observedGeneration") == d["metadata"]["generation"] and s.get("readyReplicas") == s.get("replicas") == s.get("updatedReplicas") == replicas


def hello(cluster):
    return [p["status"].get("phase") for p in cluster.admin.list("pods", "default") if p["metadata"]["name"].startswith("hello-")]


def test_from_nothing_to_a_running_gang(cluster, type_, sources):
    make, install, look = blocks("In a cluster: the chart")
    type_(make)
    (image,) = (sources / "dist").glob("sluice-*.oci.tar")
    for n in cluster.nodes:
        n.import_image(image)
        n.inside("ctr", "-n", "k8s.io", "images", "tag", "localhost/busybox:1", "docker.io/library/busybox:1.36")
    volume(cluster)
    assert len(install.splitlines()) == 2
    begun = time.monotonic()
    type_(install)
    until(lambda: hello(cluster) == ["Running"] * 4, message="the gang runs", interval=0.2)
    took = time.monotonic() - begun
    print(f"\nfrom nothing to a running gang: {took:.1f} s")
    assert took < UNDER_A_MINUTE
    told = type_(look)
    assert "hello" in told and "running" in told, told


def test_the_store(cluster, type_):
    (block,) = blocks("The store")
    with ClusterPostgres(cluster) as postgres:
        type_(block, but={"PASSWORD@db/sluice": f"PASSWORD@{GATE}:{postgres.port}/postgres"})
        until(lambda: deployed(cluster, 2), message="two replicas are ready")
        (block,) = blocks("What Sluice may do")
        type_(block)
        (block,) = blocks("Upgrade, roll back")
        type_(block)
        until(lambda: deployed(cluster, 2), message="two replicas are ready again")
        assert set(hello(cluster)) <= {"Running", "Succeeded"}, "the gang does not notice"
        away, gates = blocks("Uninstall")
        type_(away)
        type_(gates)  # tests/chart has something for it to do
    no_volume(cluster)
    cluster.admin.delete("jobs", "hello", propagation="Background")
    kept = {f"CustomResourceDefinition//{p.stem}" for p in (ROOT / "deploy/crds").glob("*.yaml")}
    until(lambda: everything(cluster) - cluster.before == kept, message="the custom resources stay, as the page says, and nothing else")
    named = re.search(r"delete them by name: `(kubectl delete -f deploy/crds)`", PAGE)[1]
    type_(named)
    typed.pop()  # a command in a sentence
    until(lambda: everything(cluster) <= cluster.before, message="nothing is left")


def test_plain_manifests(cluster, type_):
    volume(cluster)
    (block,) = blocks("Plain manifests, kustomize")
    type_(block)
    until(lambda: deployed(cluster), message="the daemon is ready")
    cluster.kubectl("delete", "-k", ROOT / "deploy")
    no_volume(cluster)
    until(lambda: everything(cluster) <= cluster.before, message="nothing is left")


@pytest.mark.timeout(1800)  # it may have to compile the packages
def test_beside_the_cluster(cluster, type_, sources):
    here, there = blocks("Beside the cluster: Debian")
    with Debian(cluster) as machine:
        type_(here)
        home = machine.root / "root"
        shutil.copy(sources / "kubeconfig", home)
        (home / "dist").mkdir()
        for name in re.findall(r"\./dist/(\S+\.deb)", there):
            shutil.copy(sources / "dist" / name, home / "dist")
        typed.append(there)
        machine.type(there)
        assert machine.type("systemctl is-active sluiced").stdout.strip() == "active"
        # It decides: a gang runs, and the command on the machine knows it.
        cluster.kubectl("apply", "-f", ROOT / "examples/kubernetes/hello.yaml")
        until(lambda: hello(cluster) == ["Running"] * 4, message="the gang runs")
        assert "hello" in machine.type("sudo sluice jobs").stdout
        assert machine.type("systemctl show -p NRestarts --value sluiced").stdout.strip() == "0"
        machine.type("systemctl start sluice-standalone")
        until(lambda: ":1092 " in machine.type("cat /proc/net/tcp").stdout, message="the matcher without a cluster listens on port 4242 (0x1092)")
    cluster.admin.delete("jobs", "hello", propagation="Background")


@pytest.mark.timeout(1800)
def test_from_source(sources):
    (block,) = blocks("From source")
    typed.append(block)
    root = Path("/tmp/sluice-root")
    shutil.rmtree(root, ignore_errors=True)
    try:
        done = subprocess.run(["sh", "-ec", block], cwd=sources, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        for name in ("bin/sluice", "bin/sluiced", "lib/systemd/system/sluiced.service", "include/sluice/sluice.h"):
            assert (root / "usr" / name).exists(), name
        assert "sluice 0.1.0" in subprocess.run([root / "usr/bin/sluice", "--version"], capture_output=True, text=True, check=True).stdout
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_nothing_was_left_out():
    assert sorted(typed) == sorted(re.findall(r"^```sh\n(.*?)^```", PAGE, re.S | re.M))

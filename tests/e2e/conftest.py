import itertools
import os
from pathlib import Path

import pytest
import yaml

from cluster.patience import until  # noqa: F401

from .daemon import ROOT, Sluiced

_number = itertools.count(1)
MANIFESTS = Path(__file__).parent / "manifests"
# The published manifests of the three systems are not ours to carry.  CI has them and skips nothing.
EXAMPLES = Path(os.environ.get("SLUICE_EXAMPLES", ROOT.parent / "shared" / "examples"))
with_examples = pytest.mark.skipif(
    not EXAMPLES.is_dir() and not os.environ.get("CI"),
    reason="the published examples are not here: SLUICE_EXAMPLES names their folder; test_shapes.py and test_held.py have shapes of our own",
)


def established(crd):
    return any(x["type"] == "Established" and x["status"] == "True" for x in crd.get("status", {}).get("conditions") or [])


#: The kind in which agents publish the NUMA zones of nodes.
ZONES = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "noderesourcetopologies.topology.node.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
    "spec": {"group": "topology.node.k8s.io", "scope": "Cluster",
             "names": {"kind": "NodeResourceTopology", "listKind": "NodeResourceTopologyList",
                       "plural": "noderesourcetopologies", "singular": "noderesourcetopology"},
             "versions": [{"name": "v1alpha2", "served": True, "storage": True,
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]},
}  # fmt: skip


def serve_kinds(admin, crds):
    """Install CustomResourceDefinitions and wait until they are served."""
    for crd in crds:
        admin.apply(crd)
    for crd in crds:
        admin.wait("customresourcedefinitions", crd["metadata"]["name"], established, namespace=None)
    admin.resources = None


def crds(cluster):
    """Install the CustomResourceDefinitions of deploy/crds and wait until they are served."""
    files = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))
    serve_kinds(cluster.admin, [crd for f in files for crd in yaml.safe_load_all(f.read_text())])


@pytest.fixture(scope="module")
def sluiced(module_cluster):
    crds(module_cluster)
    with Sluiced(module_cluster) as d:
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


@pytest.fixture
def space(module_cluster):
    """A fresh namespace of the module's cluster."""
    name = f"t{next(_number)}-{os.getpid()}"
    module_cluster.namespace(name)
    yield name
    if recorder := getattr(module_cluster, "recorder", None):
        recorder.mark()
    for kind in ("jobs", "deployments", "replicasets", "statefulsets"):
        for obj in module_cluster.admin.list(kind, name):
            module_cluster.admin.delete(kind, obj["metadata"]["name"], name, propagation="Background", missing_ok=True)
    module_cluster.admin.delete_all("pods", name, grace=0)
    module_cluster.admin.delete("namespaces", name, None)


@pytest.fixture
def apply(module_cluster, space):
    """apply("file.yaml", KEY="value"): the objects of a manifest in the test's namespace."""

    def run(file, namespace=None, **words):
        text = (MANIFESTS / file).read_text()
        for key, value in words.items():
            text = text.replace("$" + key, str(value))
        objects = [o for o in yaml.safe_load_all(text) if o]
        for obj in objects:
            obj["metadata"]["namespace"] = namespace or space
            module_cluster.admin.create(obj)
        return objects

    return run

"""pytest fixtures: clusters for a session or a module, namespaces for a test."""

import itertools
import os
from contextlib import ExitStack

import pytest

from .audit import Audit
from .cluster import Cluster
from .gangs import GangWatch

_number = itertools.count(1)


def _name(hint):
    return f"test-{os.getpid()}-{hint}-{next(_number)}"


@pytest.fixture(scope="session")
def cluster():
    """One cluster for the whole session, with the nodes of hack/cluster/nodes.yaml.  Tests share it:
    use the `namespace` fixture, leave the nodes as they were."""
    with Cluster(_name("session")) as c:
        yield c


@pytest.fixture
def make_cluster():
    """make_cluster(hint, **options of Cluster): a cluster that ends with the test."""
    with ExitStack() as stack:
        yield lambda hint="made", **options: stack.enter_context(Cluster(_name(hint), **options))


@pytest.fixture(scope="module")
def module_cluster(request):
    """A cluster of the module's own; CLUSTER = {...} in the module gives its options."""
    with Cluster(_name(request.module.__name__.rpartition(".")[2]), **getattr(request.module, "CLUSTER", {})) as c:
        yield c


@pytest.fixture
def namespace(cluster):
    """A fresh namespace in the session's cluster, deleted afterwards."""
    name = f"t-{next(_number)}-{os.getpid()}"
    cluster.namespace(name)
    yield name
    cluster.admin.delete_all("pods", name, grace=0)
    cluster.admin.delete("namespaces", name, None)


@pytest.fixture
def gang_watch(cluster):
    with GangWatch(cluster.admin) as watch:
        yield watch


@pytest.fixture
def audit(cluster):
    return Audit(cluster.audit_log)

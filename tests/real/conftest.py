import pytest

from cluster.patience import until  # noqa: F401
from cluster.real import RealCluster, programs

from .installed import Installed, image


@pytest.fixture(scope="session")
def real():
    """Four real nodes of two processors each."""
    with RealCluster("real-test", real=4, images=[programs("mpi") / "mpi.tar", image()]) as c:
        yield c


@pytest.fixture(scope="session")
def daemon(real):
    """sluiced as a pod on one of the nodes; uninstalled at the end, with nothing left behind."""
    installed = Installed(real).up()
    yield installed
    installed.down()


@pytest.fixture(scope="module")
def sluiced(daemon):
    yield daemon
    daemon.check()


@pytest.fixture
def space(real, request):
    name = f"{request.node.name.replace('_', '-')[:50]}"
    real.namespace(name)
    yield name
    for kind in ("jobs", "deployments", "statefulsets"):
        for obj in real.admin.list(kind, name):
            real.admin.delete(kind, obj["metadata"]["name"], name, propagation="Background", missing_ok=True)
    real.admin.delete_all("pods", name, grace=0)
    real.admin.delete("namespaces", name, None)

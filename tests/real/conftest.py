import pytest

from cluster.patience import until  # noqa: F401
from cluster.real import RealCluster, programs
from e2e.conftest import crds
from e2e.daemon import Sluiced


@pytest.fixture(scope="session")
def real():
    """Four real nodes of two processors each, and sluiced beside them."""
    with RealCluster("real-test", real=4, images=[programs("mpi") / "mpi.tar"]) as c:
        crds(c)
        yield c


@pytest.fixture(scope="module")
def sluiced(real):
    with Sluiced(real) as d:
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


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

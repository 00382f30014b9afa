"""The test cluster, driven from Python.  docs/cluster.md is the manual."""

from .api import Api, ApiError
from .audit import Audit, Binding
from .cluster import COMPONENTS, Cluster, kubectl
from .gangs import GangWatch
from .patience import until
from .proxy import Proxy
from .seed import compact, etcd, seed

__all__ = [
    "COMPONENTS", "Api", "ApiError", "Audit", "Binding", "Cluster", "GangWatch", "Proxy", "compact", "etcd", "kubectl", "seed",
    "until",
]

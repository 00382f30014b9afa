"""The test cluster, driven from Python.  docs/cluster.md is the manual."""

from .api import Api, ApiError
from .cluster import COMPONENTS, Cluster, kubectl

__all__ = ["COMPONENTS", "Api", "ApiError", "Cluster", "kubectl"]

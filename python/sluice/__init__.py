"""Match jobs against resources.

Two faces: clients of the Fluxion services (`FluxionClient`, `FluenceClient`, `FluxnetesClient`) that speak gRPC to a
sluiced, and `Graph`, the same matcher in this process through libsluice.
"""

from .client import ExternalClient, FluenceClient, FluxionClient, FluxnetesClient
from .graph import Answer, Graph, Job, SluiceError

__all__ = ["Answer", "ExternalClient", "FluenceClient", "FluxionClient", "FluxnetesClient", "Graph", "Job", "SluiceError"]
__version__ = "0.1.0"

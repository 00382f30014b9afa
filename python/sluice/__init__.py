"""Match jobs against resources.

The package has clients of the Fluxion services (`FluxionClient`, `FluenceClient`, `FluxnetesClient`, `ExternalClient`),
which call a sluiced over gRPC, and `Graph`, the same matcher in this process through libsluice.
"""

from .client import ExternalClient, FluenceClient, FluxionClient, FluxnetesClient
from .graph import Answer, Graph, Job, SluiceError

__all__ = ["Answer", "ExternalClient", "FluenceClient", "FluxionClient", "FluxnetesClient", "Graph", "Job", "SluiceError"]
__version__ = "0.1.0"

"""Clients of the Fluxion services over gRPC, with the method names of the original clients.

Wherever a method takes a text (a jobspec, a graph), it also takes the name of a file with that text.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any, Iterable, Mapping, Self, Sequence

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

#: A text, the path of a file with that text, or (jobspecs, graphs) a mapping that is sent as JSON.
Text = str | Path | Mapping[str, Any]


def read_text(given: Text) -> str:
    """Return the text: as given, from the file, or the mapping as JSON."""
    if isinstance(given, Mapping):
        return json.dumps(given)
    if isinstance(given, Path):
        return given.read_text()
    if "\n" not in given and not given.lstrip().startswith("{") and len(given) < 4096 and Path(given).is_file():
        return Path(given).read_text()
    return given


class _Service:
    """A connection to one service.  Both dialects of fluxion.FluxionService have the same names, so each client has a
    pool of descriptors of its own."""

    _file = ""

    def __init__(self, host: str = "localhost:4242", *, credentials: grpc.ChannelCredentials | None = None, token: str | None = None,
                 timeout: float | None = None) -> None:
        """`credentials` for TLS (grpc.ssl_channel_credentials()); `token`: a Kubernetes token; `timeout`: seconds a call may take."""
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.secure_channel(host, credentials, options) if credentials else grpc.insecure_channel(host, options)
        self.timeout = timeout
        self._metadata: tuple[tuple[str, str | bytes], ...] | None = (("authorization", f"Bearer {token}"),) if token else None
        self._pool = descriptor_pool.DescriptorPool()
        files = descriptor_pb2.FileDescriptorSet.FromString(resources.files("sluice").joinpath(f"{self._file}.pb").read_bytes())
        for f in files.file:
            self._pool.Add(f)
        self._methods = {m.name: (f"/{files.file[0].package}.{s.name}/{m.name}", m.input_type[1:], m.output_type[1:])
                         for s in files.file[0].service for m in s.method}

    def _call(self, method: str, **fields: Any) -> Any:
        path, into, out = self._methods[method]
        request: Message = self._message(into)(**fields)
        call = self.channel.unary_unary(path, request_serializer=lambda m: m.SerializeToString(), response_deserializer=self._message(out).FromString)
        return call(request, timeout=self.timeout, metadata=self._metadata)

    def _message(self, name: str) -> Any:
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))

    def close(self) -> None:
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FluxionClient(_Service):
    """fluxion.FluxionService, as Fluxion's own clients and Fluxqueue speak it."""

    _file = "fluxion"

    def init(self, cluster_nodes: Text, policy: str = "") -> Any:
        """Load a graph (JGF).  In a cluster it succeeds and changes nothing."""
        return self._call("Init", jgf=read_text(cluster_nodes), policy=policy)

    def match(self, jobspec: Text, request: str = "allocate", reservation: bool = False) -> Any:
        """Return allocation (JGF), jobid, reserved, at, overhead.  Raises grpc.RpcError "Allocation was not possible" if the job does not fit."""
        return self._call("Match", jobspec=read_text(jobspec), request=request, reservation=reservation)

    def cancel(self, jobid: int) -> Any:
        return self._call("Cancel", jobID=jobid)

    def grow(self, jgf: Text) -> Any:
        return self._call("Grow", jgf=read_text(jgf))

    def shrink(self, nodepaths: Sequence[str]) -> Any:
        return self._call("Shrink", nodepaths=list(nodepaths))


def _pod(id: str, cpu: int, memory: int, gpu: int, labels: Iterable[str]) -> dict[str, Any]:
    return {"id": id, "container": id, "cpu": cpu, "memory": memory, "gpu": gpu, "labels": list(labels)}


class FluenceClient(_Service):
    """fluxcli.FluxcliService, the matcher of Fluence's sidecar."""

    _file = "fluxcli"

    def match(self, id: str, count: int, cpu: int = 1, memory: int = 0, gpu: int = 0, labels: Iterable[str] = ()) -> Any:
        """Allocate `count` pods of `cpu` cores, `memory` bytes and `gpu` GPUs each.  Returns podID, nodelist, jobID."""
        return self._call("Match", ps=_pod(id, cpu, memory, gpu, labels), request="allocate", count=count)

    def cancel(self, jobid: int) -> Any:
        return self._call("Cancel", jobID=jobid)


class FluxnetesClient(_Service):
    """fluxion.FluxionService in the dialect of Fluxnetes' sidecar."""

    _file = "fluxnetes"

    def match(self, job_name: str, count: int, cpu: int = 1, memory: int = 0, gpu: int = 0, labels: Iterable[str] = (), reserve: bool = False) -> Any:
        """Return fluxID, nodelist, allocated, reserved, reserved_at.  If the job does not fit, it is neither allocated nor reserved."""
        return self._call("Match", podspec=_pod(job_name, cpu, memory, gpu, labels), count=count, reserve=reserve, jobName=job_name)

    def cancel(self, flux_id: int, no_exist_ok: bool = False) -> Any:
        return self._call("Cancel", fluxID=flux_id, NoExistOK=no_exist_ok)


class ExternalClient(_Service):
    """service.ExternalPluginService, served with --external-service."""

    _file = "service"

    def get_resources(self) -> str:
        """The graph as JGF."""
        graph: str = self._call("GetResources").graph
        return graph

    def list_groups(self) -> list[str]:
        return [name for name in self._call("ListGroups").name.split("\n") if name]

    def get_group(self, group: str) -> int:
        """The number of members of the group."""
        size: int = self._call("GetGroup", group=group).size
        return size

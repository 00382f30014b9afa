"""A sluiced --standalone of our own, graphs for it, and clients generated from proto/."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import grpc
from cluster.ports import free_ports
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

ROOT = Path(__file__).resolve().parents[2]


def program(name="sluiced"):
    return Path(os.environ.get("SLUICE_BUILD", ROOT / "build")) / name


def jgf(nodes=4, cores=4, first=0, gpus=0, memory=0, both=False):
    """A cluster as Fluence writes it: nodes node0, node1, ... below one root; `both`: with an edge from each child to its parent, as Fluence and
    Fluxqueue have them."""
    vertices, edges = [], []

    def vertex(kind, base, ident, path, size=1):
        n = str(len(vertices) + first * 1000)
        vertices.append({"id": n, "metadata": {"type": kind, "basename": base, "name": f"{base}{ident}", "id": ident, "uniq_id": int(n), "rank": -1,
                                               "exclusive": False, "unit": "", "size": size, "paths": {"containment": path}}})
        return n

    def edge(a, b):
        for source, target in ((a, b), (b, a))[: 1 + both]:
            edges.append({"source": source, "target": target, "metadata": {"subsystem": "containment"}})

    root = vertex("cluster", "k8scluster", 0, "/k8scluster0")
    for i in range(first, first + nodes):
        path = f"/k8scluster0/worker-{i}x{i}"
        node = vertex("node", f"worker-{i}x", i, path)
        edge(root, node)
        for kind, base, count in (("gpu", "nvidiagpu", gpus), ("core", "core", cores), ("memory", "memory", memory)):
            for k in range(count):
                edge(node, vertex(kind, base, k, f"{path}/{base}{k}", 1024 if kind == "memory" else 1))
    return json.dumps({"graph": {"nodes": vertices, "edges": edges}})


def jobspec(slots=1, cores=1, duration=3600):
    return json.dumps({"version": 9999, "resources": [{"type": "slot", "count": slots, "label": "default", "with": [{"type": "core", "count": cores}]}],
                       "attributes": {"system": {"duration": duration}},
                       "tasks": [{"command": ["app"], "slot": "default", "count": {"per_slot": 1}}]})


class Alone:
    """with Alone() as d: d.channel() ..."""

    def __init__(self, *args, graph=None, port=None, wrap=()):
        self.port = port or free_ports(1)[0]
        self._tmp = tempfile.TemporaryDirectory(prefix="sluiced-")
        self.folder = Path(self._tmp.name)
        self.args = list(args)
        self.wrap = list(wrap)
        if graph is not None:
            (self.folder / "graph.json").write_text(graph)
            self.args += ["--graph", str(self.folder / "graph.json")]
        self.log = self.folder / "log"

    def __enter__(self):
        return self.start()

    def _starts(self):
        return self.log.read_text().count("sluiced started") if self.log.exists() else 0

    def start(self, wait=True):
        before = self._starts()
        self.process = subprocess.Popen(self.wrap + [str(program()), "--standalone", "--port", str(self.port), *self.args],
                                        stderr=open(self.log, "ab"))
        end = time.monotonic() + 60
        while wait and self._starts() == before:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.01)
        return self

    def __exit__(self, *why):
        self.stop()
        self._tmp.cleanup()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        assert code == 0, (code, self.log.read_text())

    def channel(self, **options):
        pairs = {"grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1, **options}
        return grpc.insecure_channel(f"127.0.0.1:{self.port}", options=list(pairs.items()))


@cache
def _files(proto, folder):
    """What the official compiler makes of proto/FOLDER/PROTO, in a pool of its own: both dialects have the same names."""
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto' / folder}", f"--descriptor_set_out={tmp}/set", proto], check=True)
        found = descriptor_pb2.FileDescriptorSet.FromString(Path(tmp, "set").read_bytes())
    return found


class Client:
    """Every method of every service of a .proto file as a function: Client(channel, "fluxion").Match(jobspec=..., timeout=1)."""

    def __init__(self, channel, name, folder=""):
        pool = descriptor_pool.DescriptorPool()
        files = _files(f"{name}.proto", folder)
        for f in files.file:
            pool.Add(f)
        for service in files.file[0].service:
            full = f"{files.file[0].package}.{service.name}"
            for m in service.method:
                into = message_factory.GetMessageClass(pool.FindMessageTypeByName(m.input_type[1:]))
                out = message_factory.GetMessageClass(pool.FindMessageTypeByName(m.output_type[1:]))
                call = channel.unary_unary(f"/{full}/{m.name}", request_serializer=into.SerializeToString, response_deserializer=out.FromString)
                setattr(self, m.name, self._bound(call, into))

    @staticmethod
    def _bound(call, into):
        def do(timeout=10, wait=False, metadata=None, compression=None, **fields):
            return call(into(**fields), timeout=timeout, wait_for_ready=wait, metadata=metadata, compression=compression)
        return do


def nodes_of(allocation):
    return [v["metadata"]["basename"] for v in json.loads(allocation)["graph"]["nodes"] if v["metadata"]["type"] == "node"]


def cores_of(allocation):
    return [v["metadata"]["paths"]["containment"] for v in json.loads(allocation)["graph"]["nodes"] if v["metadata"]["type"] == "core"]

"""A sluiced of our own, started as a process against a test cluster."""

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import yaml

from cluster.patience import PATIENCE_S, patient

from .record import Recorder

ROOT = Path(__file__).resolve().parents[2]


def program(name="sluiced"):
    return Path(os.environ.get("SLUICE_BUILD", ROOT / "build")) / name


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Sluiced:
    """with Sluiced(cluster) as d: d.jobs() ...

    The configuration is the given mapping on top of what a test needs (own socket, free ports, short
    status interval).  The log is kept in `folder` and printed when a test fails to start it.
    """

    def __init__(self, cluster, config=None, store="memory:", folder=None, user="sluice", args=(), verify=True, kubeconfig=None, exe=None):
        self.cluster = cluster
        self.exe = exe or program()
        self._tmp = None if folder else tempfile.TemporaryDirectory(prefix="sluiced-")
        self.folder = Path(folder or self._tmp.name)
        self.socket = str(self.folder / "sluiced.sock")
        self.log = self.folder / "sluiced.log"
        self.store = store
        self.user = user
        self.kubeconfig = kubeconfig
        self.args = ["--verify"] * verify + list(args)
        self.process = None
        self.env = None  # of the process; None: ours
        self.recorder = None  # SLUICE_RECORD: the first sluiced of a cluster is recorded, see record.py
        settings = {
            "serve": {"socket": self.socket, "https": "127.0.0.1:0", "health": "127.0.0.1:0"},
            "status": {"interval": "1s"},
        }
        for section, values in (config or {}).items():
            if isinstance(values, dict):
                settings.setdefault(section, {}).update(values)
            else:
                settings[section] = values
        self.config = self.folder / "sluiced.yaml"
        self.config.write_text(yaml.safe_dump(settings))

    def start(self, timeout=0):
        path = os.environ.get("SLUICE_RECORD")
        if path and not getattr(self.cluster, "recorder", None):
            self.recorder = self.cluster.recorder = Recorder(self.cluster, path).begin()
        kubeconfig = self.kubeconfig
        if kubeconfig is None:
            kubeconfig = self.cluster.sluice_kubeconfig if self.user == "sluice" else self.cluster.kubeconfig
        command = [self.exe, "--config", self.config, "--kubeconfig", kubeconfig, "--store", self.store]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*map(str, command), *self.args], stderr=log, stdout=log, env=self.env)
        end = time.monotonic() + patient(timeout)
        while not self.ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"sluiced does not start:\n{self.tail(30)}")
            time.sleep(0.02)
        return self

    def ready(self):
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def stop(self, timeout=PATIENCE_S):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout)
        return self.process.returncode if self.process else None

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)

    __enter__ = start

    def __exit__(self, *_):
        try:
            if self.recorder:
                self.cluster.recorder = None
                self.recorder.end()
            self.stop()
        finally:
            if self.process and self.process.poll() is None:
                self.kill()
            if self._tmp:
                self._tmp.cleanup()

    def tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def request(self, method, path, body=None):
        connection = _UnixConnection(self.socket)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def port(self, name):
        """The port "health" or "https" of the process that was started last."""
        words = [w for w in self.log.read_text(errors="replace").split() if w.startswith(f"{name}_port=")]
        return int(words[-1].partition("=")[2])

    def get(self, path):
        status, body = self.request("GET", path)
        if status != 200:
            raise LookupError(f"{path}: {status} {body}")
        return json.loads(body)

    def jobs(self, namespace=None):
        return {j["name"]: j for j in self.get("/v1/jobs")["jobs"] if namespace in (None, j["namespace"])}

    def nodes(self):
        return {n["name"]: n for n in self.get("/v1/nodes")["nodes"]}

    def metrics(self):
        """{name with labels: value}"""
        lines = self.request("GET", "/metrics")[1].splitlines()
        return {k: float(v) for k, v in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}

    def rss(self):
        return int(self.metrics()["process_resident_memory_bytes"])

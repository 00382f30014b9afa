"""The published controllers of MPIJob, JobSet and LeaderWorkerSet as processes beside a test cluster, with their webhooks."""

import base64
import os
import subprocess
from pathlib import Path

import yaml

from cluster import pki
from cluster.patience import until
from cluster.ports import free_ports
from cluster.process import Process
from e2e.daemon import ROOT

#: Their webhooks see the pods of their own, as their manifests arrange it.
OWN_PODS = {"jobset": "jobset.sigs.k8s.io/jobset-name", "lws": "leaderworkerset.sigs.k8s.io/name"}


def programs():
    done = subprocess.run([ROOT / "hack/operators/build"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError("the controllers could not be made")
    return Path(done.stdout.strip())


class Operators:
    """with Operators(cluster): all of them; Operators(cluster, ["mpi-operator"]): that one."""

    def __init__(self, cluster, names=("jobset", "lws", "mpi-operator")):
        self.cluster = cluster
        self.names = names
        self.home = programs()
        self.processes = []
        self.hooks = []

    def __enter__(self):
        try:
            for name in self.names:
                self.cluster.kubectl("apply", "--server-side", "-f", self.home / f"{name}.crd.yaml")
                until(lambda name=name: self._established(name), message=f"the server knows the kind of {name}")
            self.cluster.admin.resources = None
            for name in self.names:
                if name != "mpi-operator":
                    self._with_webhooks(name, f"config.{name}.x-k8s.io/v1alpha1")
                    continue
                self.cluster.namespace(name)
                self._start(name, f"--kubeConfig={self.cluster.kubeconfig}", "--gang-scheduling=sluice", "--kube-api-qps=100", "--kube-api-burst=200")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for kind, name in self.hooks:  # no program answers them from now on
            self.cluster.admin.delete(kind, name, None, missing_ok=True)
        for p in self.processes:
            p.kill()

    def _established(self, name):
        """Asked by hand: kubectl wait stumbles over an object that has no status yet."""
        crd = yaml.safe_load((self.home / f"{name}.crd.yaml").read_text())["metadata"]["name"]
        conditions = self.cluster.admin.get("customresourcedefinitions", crd, None).get("status", {}).get("conditions") or []
        return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)

    def _start(self, name, *args):
        p = Process(name, self.cluster.folder)
        self.processes.append(p)
        p.start([*self.cluster.within, self.home / name, *args], {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), "HOME": str(self.cluster.folder)})
        return p

    def _with_webhooks(self, name, version):
        hook, health = free_ports(2)
        certs = self.cluster.folder / f"{name}-certs"
        certs.mkdir()
        pki._finish(pki.issue(self.cluster.pki, name, name, extra=("-addext", f"subjectAltName={pki.LOCAL_NAMES}")))
        for ours, theirs in (("crt", "tls.crt"), ("key", "tls.key")):
            (certs / theirs).write_bytes((self.cluster.pki / f"{name}.{ours}").read_bytes())
        config = self.cluster.folder / f"{name}.yaml"
        config.write_text(yaml.safe_dump({
            "apiVersion": version, "kind": "Configuration", "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False}, "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
            "webhook": {"host": "127.0.0.1", "port": hook, "certDir": str(certs)},
        }))  # fmt: skip
        process = self._start(name, f"--config={config}")
        listens = f"127.0.0.1:{hook}"

        def up():
            if not process.pid:
                raise RuntimeError(f"{name} ended:\n{process.tail()}")
            return "Serving webhook server" in process.log.read_text(errors="replace")

        until(up, message=f"{name} listens on {listens}")
        bundle = base64.b64encode((self.cluster.pki / "ca.crt").read_bytes()).decode()
        for obj in yaml.safe_load_all((self.home / f"{name}.webhooks.yaml").read_text()):
            if not obj:
                continue
            obj["metadata"]["name"] = f"{name}-{obj['metadata']['name']}"
            for w in obj["webhooks"]:
                w["clientConfig"] = {"url": f"https://{listens}{w['clientConfig']['service']['path']}", "caBundle": bundle}
                if any("pods" in r["resources"] for r in w["rules"]):
                    w["objectSelector"] = {"matchExpressions": [{"key": OWN_PODS[name], "operator": "Exists"}]}
            self.cluster.admin.create(obj)
            self.hooks.append((f"{obj['kind'].lower()}s", obj["metadata"]["name"]))

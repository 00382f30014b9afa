"""One test cluster: a folder, five processes, three ports."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml

from . import nodes, pki, seed
from .api import Api, ApiError
from .patience import PATIENCE_S
from .ports import free_ports
from .process import Process

TREE = Path(__file__).resolve().parents[2]
HACK = TREE / "hack" / "cluster"
DEPLOY = TREE / "deploy"

#: In the order of starting.
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
SHORT = {"apiserver": "kube-apiserver", "controller-manager": "kube-controller-manager", "scheduler": "kube-scheduler"}

#: Native gang scheduling: which gates switch it on, and the version of the API; other versions have none with PodGroups.
GANG = {"1.36": (("GenericWorkload", "GangScheduling"), "v1alpha2"), "1.37": (("GenericWorkload",), "v1beta1")}
A_YEAR = "8760h"
#: More nodes than these are written into etcd before the API server starts.
SEED_ABOVE = 64


def cache():
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice"
    return Path(os.environ.get("SLUICE_CACHE") or default)


def default_root():
    return Path(os.environ.get("SLUICE_CLUSTERS") or cache() / "clusters")


def kubernetes():
    """The version that is tried: SLUICE_K8S, else that of hack/cluster/go.mod."""
    named = os.environ.get("SLUICE_K8S") or re.search(r"k8s.io/kubernetes v(\S+)", (HACK / "go.mod").read_text())[1]
    return named.lstrip("v")


def gang_version():
    """The version of scheduling.k8s.io that has PodGroups; None: this Kubernetes has no native gangs."""
    return GANG.get(kubernetes().rpartition(".")[0], (None, None))[1]


def binaries():
    """The folder with the programs; builds them first where they are missing."""
    out = subprocess.run([HACK / "build"], stdout=subprocess.PIPE, text=True)
    if out.returncode:
        raise RuntimeError("the programs of the cluster could not be built")
    return Path(out.stdout.strip())


def kubectl():
    """The kubectl to use: the installed one, else our own."""
    return shutil.which("kubectl") or str(binaries() / "kubectl")


class Cluster(nodes.NodeActions):
    """A cluster by name.  Options of a new one:

    node_list      node file, or list of entries as in one; None: hack/cluster/nodes.yaml
    gang           native gang scheduling on (feature gates and version of scheduling.k8s.io), where this Kubernetes has it
    feature_gates  {name: bool} for all Kubernetes programs
    runtime_config list of "group/version=true" for the API server
    args           {component: [flag, ...]}: more flags, after ours
    without        components not started, for example {"kube-scheduler"}
    fairness       the API server's priority and fairness (off: more speed, as tests want it)
    """

    #: Put in front of the command of a program that the API server has to reach on 127.0.0.1.
    within = ()

    def __init__(self, name="dev", root=None, node_list=None, gang=False, feature_gates=None, runtime_config=(),
                 args=None, without=(), fairness=False):
        self.name = name
        self.folder = Path(root or default_root()) / name
        self.node_list = HACK / "nodes.yaml" if node_list is None else node_list
        gates, api = GANG.get(kubernetes().rpartition(".")[0], ((), None)) if gang else ((), None)
        self.feature_gates = {**dict.fromkeys(gates, True), **(feature_gates or {})}
        self.runtime_config = ([f"scheduling.k8s.io/{api}=true"] if api else []) + list(runtime_config)
        self.args = {SHORT.get(k, k): list(v) for k, v in (args or {}).items()}
        self.without = {SHORT.get(c, c) for c in without}
        self.fairness = fairness
        self.ports = {}
        self.bin = None
        self.processes = {c: Process(c, self.folder) for c in COMPONENTS}
        self._admin = self._sluice = None
        self._guard = self._guard_pipe = None

    # -- files ---------------------------------------------------------------------------------

    @property
    def pki(self):
        return self.folder / "pki"

    @property
    def server(self):
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def kubeconfig(self):
        """The administrator's kubeconfig (client certificate)."""
        return self.folder / "admin.kubeconfig"

    @property
    def sluice_kubeconfig(self):
        """The kubeconfig of the user with exactly the rules of deploy/rbac.yaml (client certificate)."""
        return self.folder / "sluice.kubeconfig"

    @property
    def sluice_token_kubeconfig(self):
        """The same user, signing in with a token read from a file."""
        return self.folder / "sluice-token.kubeconfig"

    @property
    def audit_log(self):
        return self.folder / "audit.log"

    @property
    def admin(self):
        if self._admin is None:
            self._admin = Api.from_kubeconfig(self.kubeconfig)
        return self._admin

    @property
    def sluice(self):
        if self._sluice is None:
            self._sluice = Api.from_kubeconfig(self.sluice_kubeconfig)
        return self._sluice

    def env(self, user="admin"):
        """Environment for a program that talks to this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.folder / f"{user}.kubeconfig")}

    def kubectl(self, *args, user="admin", check=True):
        """Run kubectl; returns what it printed."""
        done = subprocess.run([kubectl(), *map(str, args)], env=self.env(user), capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(map(str, args))}: {done.stderr.strip()}")
        return done.stdout

    def sign_in(self, name, user, groups=(), expired=False):
        """The kubeconfig of one more user with a client certificate, which may be an expired one."""
        pki.issue_user(self.pki, name, user, groups, expired)
        path = self.folder / f"{name}.kubeconfig"
        self._write_kubeconfig(path, self._certificate(name))
        return path

    def _certificate(self, name):
        return {"client-certificate": f"{self.pki}/{name}.crt", "client-key": f"{self.pki}/{name}.key"}

    def _write_kubeconfig(self, path, user):
        conf = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": self.name, "cluster": {"server": self.server, "certificate-authority": f"{self.pki}/ca.crt"}}
            ],
            "users": [{"name": path.stem, "user": user}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": path.stem}}],
            "current-context": self.name,
        }
        path.write_text(yaml.safe_dump(conf, sort_keys=False))
        path.chmod(0o600)

    def _write_files(self):
        for name in pki.USERS:
            if name != "etcd-client":
                self._write_kubeconfig(self.folder / f"{name}.kubeconfig", self._certificate(name))
        self._write_kubeconfig(self.sluice_token_kubeconfig, {"tokenFile": f"{self.pki}/sluice.token"})
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": f"{self.folder}/scheduler.kubeconfig", "qps": 5000, "burst": 10000},
        }
        (self.folder / "scheduler.yaml").write_text(yaml.safe_dump(scheduler))
        kwok = {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            # A new node makes kwok list the pods on it; one worker is busy with 1000 nodes for minutes.
            "options": {"podPlayStageParallelism": 16, "nodePlayStageParallelism": 4, "podsOnNodeSyncParallelism": 64},
        }
        (self.folder / "kwok.yaml").write_text(yaml.safe_dump(kwok))

    def _save(self):
        state = {
            "ports": self.ports,
            "feature_gates": self.feature_gates,
            "runtime_config": self.runtime_config,
            "args": self.args,
            "without": sorted(self.without),
            "fairness": self.fairness,
            "bin": str(self.bin),
            "real": getattr(self, "real", 0),
        }
        (self.folder / "cluster.json").write_text(json.dumps(state, indent=1))

    @classmethod
    def load(cls, name="dev", root=None):
        """A cluster that exists already; LookupError when it does not."""
        folder = Path(root or default_root()) / name
        try:
            state = json.loads((folder / "cluster.json").read_text())
        except OSError:
            raise LookupError(f"there is no cluster {name!r} in {folder.parent}") from None
        if state.get("real"):
            from .real import RealCluster as cls  # which is a Cluster
        self = cls(name, root)
        self.ports, self.feature_gates, self.args = state["ports"], state["feature_gates"], state["args"]
        self.runtime_config, self.fairness = state["runtime_config"], state["fairness"]
        self.without, self.bin = set(state["without"]), Path(state["bin"])
        return self

    # -- command lines -------------------------------------------------------------------------

    def _command(self, component):
        f, p = self.folder, self.pki
        etcd_url = f"https://127.0.0.1:{self.ports.get('etcd')}"
        gates = ",".join(f"{k}={str(v).lower()}" for k, v in self.feature_gates.items())
        gate_flag = [f"--feature-gates={gates}"] if gates else []
        if component == "etcd":
            peer = f"https://127.0.0.1:{self.ports['etcd-peer']}"
            flags = [
                "--name=sluice", f"--data-dir={f}/etcd",
                f"--listen-client-urls={etcd_url}", f"--advertise-client-urls={etcd_url}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=sluice={peer}",
                f"--cert-file={p}/etcd.crt", f"--key-file={p}/etcd.key",
                f"--trusted-ca-file={p}/ca.crt", "--client-cert-auth",
                f"--peer-cert-file={p}/etcd.crt", f"--peer-key-file={p}/etcd.key",
                f"--peer-trusted-ca-file={p}/ca.crt", "--peer-client-cert-auth",
                # Nothing here must survive the machine; a killed process loses nothing.
                "--unsafe-no-fsync", "--quota-backend-bytes=8589934592", "--max-txn-ops=2048",
                "--max-request-bytes=16777216", "--log-level=warn",
            ]
        elif component == "kube-apiserver":
            flags = [
                "--bind-address=127.0.0.1", f"--secure-port={self.ports['apiserver']}",
                "--advertise-address=10.0.0.1", "--endpoint-reconciler-type=none",
                "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
                f"--etcd-servers={etcd_url}", f"--etcd-cafile={p}/ca.crt",
                f"--etcd-certfile={p}/etcd-client.crt", f"--etcd-keyfile={p}/etcd-client.key",
                f"--tls-cert-file={p}/apiserver.crt", f"--tls-private-key-file={p}/apiserver.key",
                f"--client-ca-file={p}/ca.crt", f"--token-auth-file={p}/tokens.csv",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--service-account-key-file={p}/serviceaccount.pub",
                f"--service-account-signing-key-file={p}/serviceaccount.key",
                "--authorization-mode=RBAC",
                # A new node is ready when it is made; no controller has to remove a taint first.
                "--disable-admission-plugins=TaintNodesByCondition",
                f"--audit-policy-file={HACK}/audit-policy.yaml", f"--audit-log-path={self.audit_log}",
                "--audit-log-maxsize=4000", "--profiling=false",
                *(f"--runtime-config={r}" for r in self.runtime_config), *gate_flag,
            ]
            if not self.fairness:
                flags += ["--enable-priority-and-fairness=false", "--max-requests-inflight=4000",
                          "--max-mutating-requests-inflight=2000"]
        elif component == "kube-controller-manager":
            flags = [
                f"--kubeconfig={f}/controller-manager.kubeconfig", "--leader-elect=false", "--secure-port=0",
                f"--service-account-private-key-file={p}/serviceaccount.key", f"--root-ca-file={p}/ca.crt",
                "--kube-api-qps=5000", "--kube-api-burst=10000", "--concurrent-job-syncs=20",
                "--concurrent-gc-syncs=20", "--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10",
                "--concurrent-statefulset-syncs=10", "--profiling=false", "--terminated-pod-gc-threshold=100000",
                "--controllers=*,-ttl-controller",  # it writes to every node whenever their number changes much
                # Simulated nodes send no heartbeats (thousands of them would keep the machine busy):
                # a node is what its Ready condition says, until a test says otherwise.
                f"--node-monitor-grace-period={A_YEAR}", f"--node-startup-grace-period={A_YEAR}",
                "--node-monitor-period=1s", "--node-eviction-rate=100", "--secondary-node-eviction-rate=100",
                *gate_flag,
            ]
        elif component == "kube-scheduler":
            flags = [f"--config={f}/scheduler.yaml", "--secure-port=0", *gate_flag]
        else:
            flags = [
                f"--kubeconfig={f}/kwok.kubeconfig", f"--config={f}/kwok.yaml", f"--config={HACK}/stages.yaml",
                f"--manage-nodes-with-label-selector={nodes.SIMULATED}=true", "--node-lease-duration-seconds=0",
                "--cidr=10.128.0.0/9", "--node-ip=127.0.0.1", "--v=WARN",
            ]
        return [self.bin / component, *flags, *self.args.get(component, [])]

    # -- life ----------------------------------------------------------------------------------

    def up(self, timeout=PATIENCE_S):
        """Start everything and return when pods can be scheduled and run."""
        if (self.folder / "cluster.json").exists():
            raise RuntimeError(f"cluster {self.name!r} exists already in {self.folder}")
        node_objects = nodes.load(self.node_list)
        self.bin = binaries()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            pki.make(self.pki)
            for attempt in range(3):
                if self._start_server(timeout, node_objects, last=attempt == 2):
                    break
            for component in COMPONENTS[2:]:
                if component not in self.without:
                    self.start(component, wait=False)
            for path in sorted((DEPLOY / "crds").glob("*.yaml")):
                self.admin.apply_file(path)
            self.admin.apply_file(DEPLOY / "rbac.yaml")
            self.admin.wait("namespaces", "default", bool, None)
            self._service_account("default")
            if len(node_objects) <= SEED_ABOVE:
                self.admin.create_many(node_objects)
            self._wait_settled()
        except BaseException:
            self.down(keep=os.environ.get("SLUICE_CLUSTER_KEEP"))
            raise
        return self

    def _start_server(self, timeout, node_objects, last):
        """Start etcd and the API server on fresh ports; False when another program took one of the ports in the
        meantime. Many nodes are written between the two starts, so that every client gets all of them."""
        ports = free_ports(3)
        self.ports = dict(zip(("etcd", "etcd-peer", "apiserver"), ports, strict=True))
        self._write_files()
        self._save()
        self.start("etcd", wait=False)
        try:
            if len(node_objects) > SEED_ABOVE:
                seed.seed(self, node_objects, before=True)
            self.start("kube-apiserver", wait=False)
            self.wait_ready(timeout)
        except RuntimeError:
            logs = self.processes["etcd"].tail() + self.processes["kube-apiserver"].tail()
            if last or "address already in use" not in logs:
                raise
            for c in ("kube-apiserver", "etcd"):
                self.processes[c].kill()
            shutil.rmtree(self.folder / "etcd", ignore_errors=True)
            self._forget()
            return False
        return True

    def wait_ready(self, timeout=PATIENCE_S):
        """Until the API server says it is ready."""
        end = time.monotonic() + timeout
        probe = Api.from_kubeconfig(self.kubeconfig, timeout=5)
        while True:
            for c in ("etcd", "kube-apiserver"):
                if not self.processes[c].pid:
                    raise RuntimeError(f"{c} ended:\n{self.processes[c].tail()}")
            try:
                probe.request("GET", "/readyz")
                probe.close()
                return
            except (OSError, ApiError) as e:
                if time.monotonic() > end:
                    raise TimeoutError(f"the API server is not ready after {timeout} s: {e}\n{self.processes['kube-apiserver'].tail()}") from e
            time.sleep(0.05)

    def _wait_settled(self):
        for path in (DEPLOY / "crds").glob("*.yaml"):
            self.admin.wait(
                "customresourcedefinitions", path.stem,
                lambda o: any(c["type"] == "Established" and c["status"] == "True"
                              for c in o.get("status", {}).get("conditions", [])),
                None,
            )
        for c in COMPONENTS:
            if c not in self.without and not self.processes[c].pid:
                raise RuntimeError(f"{c} ended:\n{self.processes[c].tail()}")

    def start(self, component, wait=True):
        """Start one component (after stop or kill); with `wait`, until the API server is ready again."""
        component = SHORT.get(component, component)
        env = {**os.environ, "HOME": str(self.folder), "GOGC": os.environ.get("GOGC", "200")}
        env.pop("KUBECONFIG", None)
        if component == "kwok":
            # With many writes on the connection of its pod watch the server ends the watch, and kwok
            # then goes through all pods again.  HTTP/1.1 gives the watch a connection of its own.
            env["DISABLE_HTTP2"] = "true"
        self.processes[component].start(self._command(component), env)
        if wait and component in ("etcd", "kube-apiserver"):
            self._wait_served(env)

    def _wait_served(self, env, lives=3):
        """An API server that comes up on a busy machine may end by itself, because a step of its start took too
        long, or never become ready, because such a step is not tried again. The test then starts the server
        again."""
        for life in range(lives):
            try:
                return self.wait_ready()
            except (RuntimeError, TimeoutError):
                if life == lives - 1 or not self.processes["etcd"].pid:
                    raise
            self.processes["kube-apiserver"].kill()
            self.processes["kube-apiserver"].start(self._command("kube-apiserver"), env)

    def stop(self, component):
        """End one component in good order."""
        self.processes[SHORT.get(component, component)].stop()

    def kill(self, component):
        """kill -9 one component."""
        self.processes[SHORT.get(component, component)].kill()

    def restart(self, component, hard=True):
        """kill -9 (or, with hard=False, a polite stop) and start again."""
        (self.kill if hard else self.stop)(component)
        self.start(component)

    def running(self):
        """The components that run."""
        return [c for c in COMPONENTS if self.processes[c].pid]

    def down(self, keep=False):
        """End all processes and remove the folder (unless `keep`)."""
        for c in reversed(COMPONENTS):
            self.processes[c].kill()
        self._forget()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
            try:
                self.folder.parent.rmdir()
            except OSError:
                pass  # other clusters live there

    def _forget(self):
        """Drop the connections to a server that is gone."""
        for api in (self._admin, self._sluice):
            if api:
                api.close()
        self._admin = self._sluice = None

    def own(self):
        """Let this cluster end with the calling process, however that ends."""
        read, write = os.pipe()
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
        self._guard = subprocess.Popen(
            [sys.executable, "-m", "cluster", "guard", "--name", self.name, "--root", str(self.folder.parent)],
            stdin=read, start_new_session=True, env=env,
        )
        os.close(read)
        self._guard_pipe = write  # not inherited by children; closed when this process ends
        return self

    def __enter__(self):
        self.up()
        return self.own()

    def close(self):
        """down(), and no more guard."""
        self.down(keep=os.environ.get("SLUICE_CLUSTER_KEEP"))
        if self._guard:
            self._guard.kill()
            self._guard.wait()
            os.close(self._guard_pipe)
            self._guard = None

    def __exit__(self, *_):
        self.close()

    # -- namespaces ----------------------------------------------------------------------------

    def namespace(self, name, labels=None):
        """A namespace that takes pods at once: its default service account is made with it."""
        meta = {"name": name, **({"labels": labels} if labels else {})}
        self.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        self._service_account(name)
        return name

    def _service_account(self, namespace):
        """Pods are refused without it; the controller manager makes it too, but later."""
        meta = {"name": "default", "namespace": namespace}
        try:
            self.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        except ApiError as e:
            if e.status != 409:
                raise

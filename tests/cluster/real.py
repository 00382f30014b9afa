"""A test cluster with real nodes: published kubelets, containerd, runc, real containers.

Control plane and nodes live in a network namespace of their own; a forwarder on 127.0.0.1 leads to the API server.

    machine                 namespace sluice-NAME
    127.0.0.1:PORT ──► API server ◄── 10.77.0.254 ── bridge ──┬── veth ── node 1: 10.77.0.1, pods 10.77.101.0/24
                                                              └── veth ── node 2: 10.77.0.2, pods 10.77.102.0/24

A node is one process in namespaces of its own (hack/nodes/inner). Killing it is a power failure.
"""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from .cluster import TREE, Cluster
from .patience import PATIENCE_S
from .process import Process, process_state

NODES = TREE / "hack" / "nodes"
BRIDGE = "nodes"
GATE = "10.77.0.254"
CGROUP = "sluice-nodes"
MAX_NODES = 32
IMPORT_S = 600  # a node reads its images before its kubelet starts; the one with MPI is large

CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{folder}/cni"
"""

CNI = """\
{{"cniVersion": "1.0.0", "name": "pods", "plugins": [{{"type": "bridge", "bridge": "cni0", "isGateway": true,
  "hairpinMode": true, "ipam": {{"type": "host-local", "dataDir": "/run/cni", "ranges": [[{{"subnet": "{pods}.0/24"}}]],
  "routes": [{{"dst": "0.0.0.0/0"}}]}}}}]}}
"""

KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
failCgroupV1: false
enforceNodeAllocatable: [pods]
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: false}}, x509: {{clientCAFile: {ca}}}}}
authorization: {{mode: AlwaysAllow}}
address: {address}
readOnlyPort: 0
failSwapOn: false
makeIPTablesUtilChains: false
protectKernelDefaults: true
imageGCHighThresholdPercent: 100
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}}
nodeStatusUpdateFrequency: 4s
nodeLeaseDurationSeconds: 12
syncFrequency: 10s
shutdownGracePeriod: 20s
shutdownGracePeriodCriticalPods: 5s
resolvConf: /etc/resolv.conf
"""


def run(*command, check=True):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{shlex.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def programs(*more):
    """The folder with the kubelet and the images, made first where it is missing."""
    out = subprocess.run([NODES / "build", *more], stdout=subprocess.PIPE, text=True)
    if out.returncode:
        raise RuntimeError("the programs of real nodes could not be made")
    return Path(out.stdout.strip())


def hierarchies():
    """The mounted cgroup v1 hierarchies."""
    found = [p for p in Path("/sys/fs/cgroup").iterdir() if p.is_dir() and p.name != "unified" and not p.is_symlink()]
    if Path("/sys/fs/cgroup/cgroup.controllers").exists() or not found:
        raise RuntimeError("real nodes need cgroup v1 (boot with systemd.unified_cgroup_hierarchy=0); this machine has cgroup v2 only")
    return found


class RealNode:
    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.name = f"real{number}"
        self.address = f"10.77.0.{number}"
        self.pods = f"10.77.{100 + number}"
        self.folder = cluster.folder / "nodes" / self.name
        self.link = f"real{number}"

    def _write_files(self):
        for sub in ("lib", "log", "cni", "certs", "containerd"):
            (self.folder / sub).mkdir(parents=True, exist_ok=True)
        values = {"folder": self.folder, "address": self.address, "pods": self.pods, "ca": self.cluster.pki / "ca.crt"}
        (self.folder / "containerd.toml").write_text(CONTAINERD.format(**values))
        (self.folder / "cni" / "10-pods.conflist").write_text(CNI.format(**values))
        (self.folder / "kubelet.yaml").write_text(KUBELET.format(**values))
        kubeconfig = self.cluster.sign_in(self.name, f"system:node:{self.name}", ["system:nodes"])
        text = kubeconfig.read_text().replace("https://127.0.0.1:", f"https://{GATE}:")
        kubeconfig.write_text(text.replace("    certificate-authority:", "    tls-server-name: localhost\n    certificate-authority:"))
        env = {
            "NAME": self.name, "ADDRESS": self.address, "KUBECONFIG": kubeconfig, "BIN": self.cluster.node_programs / "bin",
            "IMAGES": " ".join(map(str, self.cluster.images)),
        }
        (self.folder / "node.env").write_text("".join(f"{k}={shlex.quote(str(v))}\n" for k, v in env.items()))

    def _cgroups(self):
        made = []
        for h in hierarchies():
            own = h / CGROUP / self.cluster.namespace_name / self.name
            own.mkdir(parents=True, exist_ok=True)
            if h.name == "cpuset":
                for level in (h / CGROUP, h / CGROUP / self.cluster.namespace_name, own):
                    for file in ("cpuset.cpus", "cpuset.mems"):
                        (level / file).write_text((h / file).read_text())
            made.append(own)
        return made

    def up(self):
        """Boot (again): what the node had on its disk is there."""
        for f in ("mounted", "wired", "kubelet.pid", "shutdown"):
            (self.folder / f).unlink(missing_ok=True)
        self._write_files()
        cgroups = self._cgroups()

        def enter_cgroups():
            for c in cgroups:
                (c / "cgroup.procs").write_text(str(os.getpid()))

        with open(self.folder / "log" / "node.log", "ab") as log:
            child = subprocess.Popen(
                ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--fork", "--kill-child",
                 "--propagation", "private", NODES / "inner", self.folder],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=enter_cgroups,
                cwd="/", env={"PATH": os.environ["PATH"], "HOME": "/root"},
            )
        self._child = child
        (self.folder / "unshare.pid").write_text(f"{child.pid} {process_state(child.pid)[1]}\n")
        self.wait(lambda: (self.folder / "mounted").exists(), "its mounts")
        self._wire()
        (self.folder / "wired").touch()
        return self

    def wait(self, there, what, timeout=PATIENCE_S):
        end = time.monotonic() + timeout
        while not there():
            if not self.pid:
                raise RuntimeError(f"node {self.name} ended before {what}: {self._told()}")
            if time.monotonic() > end:
                raise TimeoutError(f"node {self.name}: no sign of {what}: {self._told()}")
            time.sleep(0.02)

    def _told(self):
        """How the first process ended, what it and its programs wrote last, and whom the kernel killed for want of memory."""
        status = self._child.poll() if getattr(self, "_child", None) else None
        how = "its first process runs" if status is None else f"its first process was killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        text = how
        for name, lines in (("node", 40), ("images", 5), ("containerd", 15), ("kubelet", 15)):
            try:
                last = (self.folder / "log" / f"{name}.log").read_text(errors="replace").splitlines()[-lines:]
            except OSError:
                last = ["(no such log)"]
            text += "".join(f"\n{name}.log: {line[:400]}" for line in last or ["(empty)"])
        killed = [line for line in run("dmesg", check=False).splitlines() if "Killed process" in line or "out of memory" in line.lower()]
        return text + "".join(f"\nkernel: {line}" for line in killed[-5:])

    @property
    def pid(self):
        """Of the unshare process that holds the node; None: it is off."""
        try:
            pid, started = (self.folder / "unshare.pid").read_text().split()
        except (OSError, ValueError):
            return None
        if getattr(self, "_child", None) is not None and self._child.pid == int(pid):
            self._child.poll()
        now = process_state(pid)
        return int(pid) if now and now[1] == started else None

    @property
    def first(self):
        """The first process inside."""
        return int(Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()[0])

    def inside(self, *command, check=True):
        """Run a program on the node."""
        return run("nsenter", "-t", self.first, "-a", *command, check=check)

    def _wire(self):
        ns, pid = self.cluster.inside, self.first
        ns("ip", "link", "del", self.link, check=False)
        ns("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", pid)
        ns("ip", "link", "set", self.link, "master", BRIDGE, "up")
        ns("ip", "route", "replace", f"{self.pods}.0/24", "via", self.address)
        there = ["nsenter", "-t", pid, "-n"]
        run(*there, "ip", "link", "set", "lo", "up")
        run(*there, "ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        run(*there, "ip", "link", "set", "eth0", "up")
        run(*there, "ip", "route", "add", "default", "via", GATE)
        run(*there, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        # Pods find the API server at the address of its Service.
        for chain in ("PREROUTING", "OUTPUT"):
            run(*there, "iptables", "-t", "nat", "-A", chain, "-d", "10.96.0.1/32", "-p", "tcp", "--dport", "443",
                "-j", "DNAT", "--to-destination", f"{GATE}:{self.cluster.ports['apiserver']}")

    def import_image(self, archive):
        self.inside("ctr", "-n", "k8s.io", "images", "import", archive)

    def power_off(self):
        """Everything on the node is gone at once; its disk stays."""
        pid = self.pid
        if pid:
            first = self.first
            os.kill(pid, signal.SIGKILL)
            end = time.monotonic() + PATIENCE_S
            while (process_state(first) or self.pid) and time.monotonic() < end:
                time.sleep(0.02)
        self.cluster.inside("ip", "link", "del", self.link, check=False)

    def shut_down(self):
        """As an administrator does it: the kubelet is told beforehand and ends its pods with their grace; then the node is off."""
        (self.folder / "shutdown").touch()
        end = time.monotonic() + PATIENCE_S
        while self.pid:
            if time.monotonic() > end:
                raise TimeoutError(f"node {self.name} does not shut down: {self._told()}")
            time.sleep(0.02)
        self.power_off()

    def kill_kubelet(self):
        os.kill(self._kubelet_pid(), signal.SIGKILL)

    def _kubelet_pid(self):
        """As this machine numbers it."""
        for task in Path("/proc").iterdir():
            if not task.name.isdigit():
                continue
            try:
                line = (task / "cmdline").read_bytes()
                if line.startswith(str(self.cluster.node_programs / "bin" / "kubelet").encode()) and f"--hostname-override={self.name}\0".encode() in line + b"\0":
                    return int(task.name)
            except OSError:
                continue
        raise RuntimeError(f"node {self.name} has no kubelet")

    def start_kubelet(self):
        os.kill(self.first, signal.SIGUSR1)

    def partition(self, away=True):
        """Cut the node's wire, or mend it."""
        self.cluster.inside("ip", "link", "set", self.link, "down" if away else "up")

    def down(self):
        self.power_off()
        for h in hierarchies():
            own = h / CGROUP / self.cluster.namespace_name / self.name
            for _ in range(20):
                run("find", own, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";", check=False)
                if not own.exists():
                    break
                time.sleep(0.05)
            for level in (own.parent, own.parent.parent):
                try:
                    level.rmdir()
                except OSError:
                    pass
        shutil.rmtree(self.folder, ignore_errors=True)


class RealCluster(Cluster):
    """As Cluster, with `real` nodes besides those of node_list (none, unless told)."""

    def __init__(self, name="real", root=None, real=2, node_list=(), images=(), args=None, **options):
        self.real = real
        self.more_images = list(images)
        super().__init__(name, root, node_list=list(node_list) if isinstance(node_list, tuple) else node_list, args=args, **options)
        self.namespace_name = f"sluice-{name}"[:32]
        self.within = ["nsenter", f"--net=/run/netns/{self.namespace_name}"]
        self.forward = Process("forward", self.folder)
        self.nodes = []

    def inside(self, *command, check=True):
        """Run a program in the cluster's network namespace."""
        return run("ip", "netns", "exec", self.namespace_name, *command, check=check)

    @property
    def images(self):
        return [*sorted((self.node_programs / "images").glob("*.tar")), *self.more_images]

    def _command(self, component):
        more, p = [], self.pki
        if component == "kube-apiserver":
            more = [
                "--bind-address=0.0.0.0", "--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction",
                "--kubelet-preferred-address-types=InternalIP",
                # This cluster does not route Services: the server calls webhooks at the addresses of their pods.
                "--enable-aggregator-routing=true",
                f"--kubelet-client-certificate={p}/admin.crt", f"--kubelet-client-key={p}/admin.key",
            ]
        elif component == "kube-controller-manager":
            # Real nodes send heartbeats, so a lost one may be seen; simulated ones send none.
            if not self.node_list:
                more = ["--node-monitor-grace-period=20s", "--node-startup-grace-period=60s"]
        return [*self.within, *super()._command(component), *more]

    def start(self, component, wait=True):
        if component in ("kube-apiserver", "apiserver") and not self.forward.pid:
            env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
            self.forward.start([sys.executable, "-m", "cluster.forward", self.namespace_name, self.ports["apiserver"]], env)
        super().start(component, wait)

    def up(self, timeout=PATIENCE_S):
        if os.geteuid() != 0:
            raise RuntimeError("real nodes need root: they are made of namespaces and cgroups")
        hierarchies()
        self.node_programs = programs()
        run("ip", "netns", "del", self.namespace_name, check=False)
        run("ip", "netns", "add", self.namespace_name)
        self.inside("ip", "link", "set", "lo", "up")
        self.inside("ip", "link", "add", BRIDGE, "type", "bridge")
        self.inside("ip", "addr", "add", f"{GATE}/24", "dev", BRIDGE)
        self.inside("ip", "link", "set", BRIDGE, "up")
        self.inside("sysctl", "-qw", "net.ipv4.ip_forward=1")
        super().up(timeout)
        try:
            self.nodes = [RealNode(self, i + 1).up() for i in range(self.real)]
            for n in self.nodes:
                n.wait(lambda n=n: (n.folder / "kubelet.pid").exists(), "its kubelet", IMPORT_S)
                self.admin.wait("nodes", n.name, ready, None)
        except BaseException:
            self.down(keep=os.environ.get("SLUICE_CLUSTER_KEEP"))
            raise
        return self

    def down(self, keep=False):
        nodes = self.nodes or [RealNode(self, i + 1) for i in range(MAX_NODES) if (self.folder / "nodes" / f"real{i + 1}").exists()]
        for n in nodes:
            (n.power_off if keep else n.down)()
        self.nodes = []
        self.forward.kill()
        super().down(keep)
        run("ip", "netns", "del", self.namespace_name, check=False)


def ready(node):
    return bool(node) and any(c["type"] == "Ready" and c["status"] == "True" for c in node.get("status", {}).get("conditions", []))

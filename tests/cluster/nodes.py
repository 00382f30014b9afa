"""Simulated nodes: from a short description to Node objects."""

import copy
import time

import yaml

ZONE = "topology.kubernetes.io/zone"
BLOCK = "topology.sluice.sh/block"
RACK = "topology.sluice.sh/rack"
LEVELS = {"zone": ZONE, "block": BLOCK, "rack": RACK}
GPU = "nvidia.com/gpu"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

#: Nodes with this label are simulated by kwok; take it away and the node is dead.
SIMULATED = "sluice.test/simulated"

_KEYS = {
    "name", "count", "first", "cpu", "memory", "gpu", "pods", "storage", "labels", "annotations", "taints",
    "per", "control-plane", "unschedulable", "reserved", "capacity",
}


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def ready_condition(status="True", reason="KubeletReady", message="simulated"):
    t = now()
    return {
        "type": "Ready", "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": t, "lastTransitionTime": t,
    }


def taint(text):
    """"key=value:Effect" or "key:Effect" as a taint."""
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    if not key or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
        raise ValueError(f"taint {text!r} is not key[=value]:NoSchedule|PreferNoSchedule|NoExecute")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def expand(entry):
    """The Node objects of one entry of a node file."""
    unknown = set(entry) - _KEYS
    if unknown or "name" not in entry:
        raise ValueError(f"node entry {entry.get('name')!r}: unknown key {sorted(unknown)}" if unknown
                         else f"node entry without a name: {entry}")
    for level in entry.get("per", {}):
        if level not in LEVELS:
            raise ValueError(f"node entry {entry['name']!r}: per: {level!r} is not one of {', '.join(LEVELS)}")
    capacity = {
        "cpu": str(entry.get("cpu", 8)),
        "memory": str(entry.get("memory", "32Gi")),
        "pods": str(entry.get("pods", 110)),
        "ephemeral-storage": str(entry.get("storage", "100Gi")),
        **{k: str(v) for k, v in entry.get("capacity", {}).items()},
    }
    if entry.get("gpu"):
        capacity[GPU] = str(entry["gpu"])
    allocatable = {**capacity, **{k: str(v) for k, v in entry.get("reserved", {}).items()}}
    taints = [taint(t) for t in entry.get("taints", [])]
    labels = {SIMULATED: "true", **entry.get("labels", {})}
    for old in ("", "beta."):  # the controller manager adds the old spelling to each node that lacks it
        labels |= {f"{old}kubernetes.io/os": "linux", f"{old}kubernetes.io/arch": "amd64"}
    if entry.get("control-plane"):
        labels[CONTROL_PLANE] = ""
        taints.append(taint(f"{CONTROL_PLANE}:NoSchedule"))
    count, first = entry.get("count"), entry.get("first", 0)
    width = max(3, len(str(first + (count or 1) - 1)))
    nodes = []
    for i in range(first, first + (count or 1)):
        name = f"{entry['name']}-{i:0{width}d}" if count is not None else entry["name"]
        place = {LEVELS[level]: f"{level}-{i // size}" for level, size in entry.get("per", {}).items()}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {**labels, "kubernetes.io/hostname": name, **place},
                "annotations": dict(entry.get("annotations", {})),
            },
            "spec": {},
            "status": {
                "capacity": dict(capacity),
                "allocatable": dict(allocatable),
                "conditions": [ready_condition()],
                "addresses": [{"type": "Hostname", "address": name}],
                "nodeInfo": {
                    "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "simulated://1",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.36.3",
                    "machineID": "", "operatingSystem": "linux", "osImage": "simulated", "systemUUID": "",
                },
            },
        }
        if taints:
            node["spec"]["taints"] = copy.deepcopy(taints)
        if entry.get("unschedulable"):
            node["spec"]["unschedulable"] = True
        nodes.append(node)
    return nodes


def load(source):
    """Node objects from a file name, or from a list of entries."""
    if not isinstance(source, list):
        with open(source) as f:
            source = yaml.safe_load(f) or []
    if not isinstance(source, list):
        raise ValueError("a node file is a list of entries")
    return [node for entry in source for node in expand(entry)]


class NodeActions:
    """What can happen to a node.  Mixed into Cluster; `self.admin` is the administrator's Api."""

    def add_nodes(self, *entries):
        """Add nodes: entries as in a node file.  Returns their names."""
        made = self.admin.create_many([n for e in entries for n in expand(e)])
        return [n["metadata"]["name"] for n in made]

    def remove_node(self, name):
        """Delete the Node object; Kubernetes then collects its pods."""
        self.admin.delete("nodes", name, None)

    def cordon(self, name, on=True):
        self.admin.patch("nodes", name, {"spec": {"unschedulable": True if on else None}}, None)

    def set_ready(self, name, ready=True):
        """The node's kubelet says Ready or NotReady; its pods go on."""
        condition = (
            ready_condition() if ready else ready_condition("False", "KubeletNotReady", "made so by a test")
        )
        self.admin.patch("nodes", name, {"status": {"conditions": [condition]}}, None, "strategic", "status")

    def kill_node(self, name):
        """Power off: pods freeze as they are, the node becomes Unknown as after a lost heartbeat."""
        pods = self.admin.list("pods", fields=f"spec.nodeName={name}")
        frozen = {"metadata": {"annotations": {"sluice.test/frozen": "true"}}}
        for pod in pods:
            self.admin.patch("pods", pod["metadata"]["name"], frozen, pod["metadata"]["namespace"])
        self.admin.patch("nodes", name, {"metadata": {"labels": {SIMULATED: None}}}, None)
        condition = ready_condition("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        self.admin.patch("nodes", name, {"status": {"conditions": [condition]}}, None, "strategic", "status")

    def revive_node(self, name):
        """The machine comes back; its pods go on where they stood."""
        self.admin.patch("nodes", name, {"metadata": {"labels": {SIMULATED: "true"}}}, None)
        self.set_ready(name)
        for pod in self.admin.list("pods", fields=f"spec.nodeName={name}"):
            thaw = {"metadata": {"annotations": {"sluice.test/frozen": None}}}
            self.admin.patch("pods", pod["metadata"]["name"], thaw, pod["metadata"]["namespace"])

    def resize_node(self, name, **resources):
        """New amounts: resize_node("node-001", cpu=4, memory="8Gi", gpu=2); 0 or None takes a device away."""
        amounts = {}
        for key, value in resources.items():
            amounts[GPU if key == "gpu" else key] = None if value is None else str(value)
        patch = {"status": {"capacity": amounts, "allocatable": amounts}}
        self.admin.patch("nodes", name, patch, None, "strategic", "status")

    def label_node(self, name, labels):
        """Set labels; None removes one."""
        self.admin.patch("nodes", name, {"metadata": {"labels": labels}}, None)

    def taint_node(self, name, *taints):
        """Replace the taints of a node by these ("key=value:Effect"); none clears them."""
        self.admin.patch("nodes", name, {"spec": {"taints": [taint(t) for t in taints] or None}}, None)

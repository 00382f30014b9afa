"""The chart as helm installs it, and a sluiced that runs with what it grants."""

import json
import subprocess
import tempfile
from pathlib import Path

import yaml

from cluster.ports import free_ports

from e2e.daemon import ROOT, Sluiced

CHART = ROOT / "charts" / "sluice"
NAMESPACE = "sluice-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:sluice"
_helm = None


def helm_program():
    global _helm
    if _helm is None:
        _helm = subprocess.run([ROOT / "hack/helm/build"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    return _helm


def helm(*args, cluster=None, check=True):
    """Run helm; what it printed, or with check=False the whole outcome."""
    env = cluster.env() if cluster else None
    done = subprocess.run([helm_program(), *map(str, args)], env=env, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"helm {' '.join(map(str, args))}: {done.stderr.strip()}")
    return done.stdout if check else done


def values(**settings):
    """--set options from a mapping, lists and all."""
    return [x for k, v in settings.items() for x in ("--set-json", f"{k.replace('__', '.')}={json.dumps(v)}")]


def rendered(*options):
    return [o for o in yaml.safe_load_all(helm("template", "sluice", CHART, "--namespace", NAMESPACE, *options)) if o]


def bare(cluster):
    """Take away what the test cluster brought from deploy/: the chart brings its own."""
    for file in (ROOT / "deploy/rbac.yaml", *sorted((ROOT / "deploy/crds").glob("*.yaml"))):
        cluster.kubectl("delete", "--ignore-not-found", "-f", file)
    cluster.admin.resources = None


def space(cluster):
    """The namespace of the release, in which only restricted pods are admitted."""
    cluster.namespace(NAMESPACE, labels={"pod-security.kubernetes.io/enforce": "restricted"})


def volume(cluster, name="sluice-store"):
    """Something for the claim of the chart to bind to: the cluster has no provisioner."""
    spec = {"capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nonexistent"},
            "persistentVolumeReclaimPolicy": "Retain"}
    cluster.admin.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec})


def leftovers(cluster):
    """Everything in the cluster that carries the release's label, of every kind there is."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    out = cluster.kubectl("get", ",".join(kinds), "--all-namespaces", "--ignore-not-found", "-o", "name", "-l", "app.kubernetes.io/instance=sluice")
    return set(out.split())


class ChartDaemon(Sluiced):
    """sluiced with the settings of the release's ConfigMap and the token of its account, on ports of this machine.
    hooked: the API server asks its webhook by URL, for nothing routes to a Service here; helm cannot upgrade such a one.
    wire: a Proxy between the daemon and the API server."""

    def __init__(self, cluster, store="memory:", hooked=False, exe=None, wire=None, **more):
        config = cluster.admin.get("configmaps", "sluice", NAMESPACE)
        settings = yaml.safe_load(config["data"]["sluiced.yaml"])
        (port,) = free_ports(1)
        settings["serve"] |= {"https": "127.0.0.1:0", "health": "127.0.0.1:0"}
        settings["webhook"] |= {"listen": f"127.0.0.1:{port}", "names": ["localhost", *settings["webhook"]["names"]]}
        settings.pop("store", None)
        settings["log"]["format"] = "text"
        folder = Path(tempfile.mkdtemp(prefix="sluiced-"))
        settings["serve"]["socket"] = str(folder / "sluiced.sock")
        token = cluster.kubectl("create", "token", "sluice", "-n", NAMESPACE, "--duration", "8h").strip()
        (folder / "token").write_text(token)
        kubeconfig = folder / "kubeconfig"
        cluster._write_kubeconfig(kubeconfig, {"tokenFile": str(folder / "token")})
        if wire:
            kubeconfig.write_text(kubeconfig.read_text().replace(cluster.server, f"https://127.0.0.1:{wire.port}"))
        super().__init__(cluster, config=settings | more, store=store, folder=folder, kubeconfig=kubeconfig, exe=exe)
        if hooked:
            hooks = cluster.admin.get("mutatingwebhookconfigurations", "sluice", None)
            for hook in hooks["webhooks"]:
                hook["clientConfig"] = {"url": f"https://localhost:{port}{hook['clientConfig']['service']['path']}"}
            cluster.admin.replace(hooks)


def granted(cluster):
    """{(group, resource, verb, name or "")} that the account may, by the roles bound to it."""
    found = set()
    for kind, space_ in (("clusterrolebindings", None), ("rolebindings", NAMESPACE)):
        for binding in cluster.admin.list(kind, space_):
            if not any(s.get("name") == "sluice" and s.get("namespace") == NAMESPACE for s in binding.get("subjects") or []):
                continue
            ref = binding["roleRef"]
            role = cluster.admin.get(ref["kind"].lower() + "s", ref["name"], None if ref["kind"] == "ClusterRole" else NAMESPACE)
            for rule in role["rules"]:
                found |= {(g, r, v, n) for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]
                          for n in rule.get("resourceNames", [""])}
    return found


def asked(cluster, user=ACCOUNT):
    """[(group, resource, verb, name, code)] of every request of the account, from the audit log."""
    found = []
    for line in cluster.audit_log.read_text(errors="replace").splitlines():
        event = json.loads(line)
        if event.get("stage") != "ResponseComplete" and event.get("verb") != "watch" or event["user"]["username"] != user:
            continue
        ref = event.get("objectRef")
        if not ref:
            continue
        resource = ref.get("resource", "") + (f"/{ref['subresource']}" if ref.get("subresource") else "")
        found.append((ref.get("apiGroup", ""), resource, event["verb"], ref.get("name", ""), event.get("responseStatus", {}).get("code", 0)))
    return found

"""sluiced as a pod: our own image, the chart's Deployment, its account, certificates and webhook, SQLite on a volume.

What is applied is deploy/, which tools/chart makes from the chart with its default values; tests/chart holds the two together.
"""

import json
import os
from pathlib import Path

from cluster.patience import until
from e2e.daemon import ROOT

NAMESPACE = "sluice-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:sluice"
IMAGES = "sluice-*.oci.tar"
USER = 65532  # of the image


def image():
    """The archive that `make image` wrote."""
    found = sorted((ROOT / os.environ.get("DIST", "dist")).glob(IMAGES))  # nodes read it from another folder
    if not found:
        raise RuntimeError("there is no image of sluiced: make image")
    return found[-1]


class Installed:
    def __init__(self, cluster):
        self.cluster = cluster
        self.restarts = 0

    def up(self):
        home = self.cluster.nodes[0]
        store = home.folder / "lib" / "sluice-store"  # /var/lib/sluice-store of that node
        store.mkdir()
        os.chown(store, USER, USER)
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [home.name]}
        self.cluster.admin.create({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "sluice-store"},
            "spec": {"capacity": {"storage": "8Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
                     "hostPath": {"path": "/var/lib/sluice-store", "type": "Directory"},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}},
        })  # fmt: skip
        self.cluster.kubectl("label", "--overwrite", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        self.cluster.kubectl("apply", "-k", ROOT / "deploy")
        self.cluster.admin.resources = None
        self.wait()
        return self

    def pod(self):
        """The daemon's pod, the one that is not on its way out."""
        there = [p for p in self.cluster.admin.list("pods", NAMESPACE) if not p["metadata"].get("deletionTimestamp")]
        return there[0] if there else None

    def is_ready(self):
        pod = self.pod()
        return bool(pod) and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))

    def wait(self):
        try:
            until(self.is_ready)
        except BaseException:
            print(self.cluster.kubectl("describe", "pods", "-n", NAMESPACE, check=False))
            print(self.log())
            raise
        until(self.is_trusted)

    def is_trusted(self):
        hooks = self.cluster.admin.get("mutatingwebhookconfigurations", "sluice", None)["webhooks"]
        return all(h["clientConfig"].get("caBundle") for h in hooks)

    def sluice(self, *args):
        """The command, inside the daemon's pod."""
        return self.cluster.kubectl("exec", "-n", NAMESPACE, "deploy/sluice", "--", "sluice", *args)

    def jobs(self):
        return {j["name"]: j for j in json.loads(self.sluice("jobs", "--output", "json"))["jobs"]}

    def log(self):
        return self.cluster.kubectl("logs", "-n", NAMESPACE, "deploy/sluice", "--tail=200", check=False)

    def replace(self):
        """Delete the daemon's pod; the Deployment makes another."""
        old = self.pod()["metadata"]
        self.cluster.admin.delete("pods", old["name"], NAMESPACE)
        until(lambda: (self.pod() or {}).get("metadata", {}).get("uid") not in (None, old["uid"]) and self.is_ready())

    def check(self):
        """Check that the daemon did not end by itself, and asked for nothing that the roles do not grant."""
        from chart.chart import asked, granted

        states = self.pod()["status"]["containerStatuses"]
        assert all(s["restartCount"] == 0 for s in states), f"{states}\n{self.log()}"
        requests, may = asked(self.cluster, ACCOUNT), {rule[:3] for rule in granted(self.cluster)}
        assert requests, "the audit log knows the daemon"
        assert not {r for r in requests if r[4] == 403}
        assert {r[:3] for r in requests} <= may, {r[:3] for r in requests} - may

    def down(self):
        self.cluster.kubectl("delete", "-k", ROOT / "deploy", "--ignore-not-found", "--wait=false")
        until(lambda: not any(n["metadata"]["name"] == NAMESPACE for n in self.cluster.admin.list("namespaces")))
        kinds = self.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        left = self.cluster.kubectl("get", ",".join(kinds), "-A", "--ignore-not-found", "-o", "name",
                                    "-l", "app.kubernetes.io/name=sluice").split()  # fmt: skip
        assert not left, f"uninstalled, and still there: {left}"

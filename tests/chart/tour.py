"""Everything that makes the daemon ask the API server for something: one step for each rule of the chart's roles.

Six nodes of 8 processors, one of which also carries the release's own pod: five pods of 8 processors fill the rest.
"""

import subprocess

from cluster import work
from cluster.patience import until
from e2e.conftest import ZONES, serve_kinds
from e2e.daemon import program

from . import chart
from .chart import NAMESPACE

HELD = "held"
OLD, OLDER, NATIVE = "scheduling.x-k8s.io/v1alpha1", "scheduling.sigs.k8s.io/v1alpha1", "scheduling.k8s.io/v1alpha2"
LABEL = {OLD: "scheduling.x-k8s.io/pod-group", OLDER: "pod-group.scheduling.sigs.k8s.io"}


class Tour:
    """With a daemon that writes a log of level debug."""

    def __init__(self, cluster, daemon, wire):
        self.cluster, self.api, self.d, self.wire = cluster, cluster.admin, daemon, wire

    def runs(self, name, state="running", namespace=None):
        until(lambda: self.d.jobs(namespace)[name]["state"] == state, message=f"{name} is {state}")

    def placed(self, prefix, namespace="default"):
        pods = [p for p in self.api.list("pods", namespace) if p["spec"].get("nodeName") and not p["metadata"].get("deletionTimestamp")]
        return [p for p in pods if p["metadata"]["name"].startswith(prefix)]

    def sluice(self, *words):
        command = [program("sluice"), *words, "-n", "default", "-s", f"unix:{self.d.socket}"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def go(self):
        until(lambda: self.d.metrics()["sluice_leader"] == 1, message="the daemon leads")
        self.zones()
        self.reservations()
        self.lost_answers()
        self.groups()
        self.held_work()
        self.resizes()
        self.callers()
        self.lost_lease()
        self.certificates()

    def zones(self):
        """A kind that comes while the daemon runs; it looks for it every ten seconds."""
        serve_kinds(self.api, [ZONES])
        watch = ("topology.node.k8s.io", "noderesourcetopologies", "watch")
        until(lambda: any(r[:3] == watch for r in chart.asked(self.cluster)), message="the daemon watches the zones of nodes", interval=1)

    def reservations(self):
        self.sluice("reserve", "class", "--count", "1", "--from", "+1h", "--until", "+2h")
        phase = lambda: self.api.get("reservations", "class", "default")["status"]["phase"]  # noqa: E731
        until(lambda: phase() == "Planned", message="the reservation is planned")
        self.sluice("unreserve", "class")
        until(lambda: phase() == "Ended", message="the reservation is over")

    def lost_answers(self):
        """Bindings are made, the wire breaks before the answers come, and the server is away for longer than bindings are tried again:
        the daemon looks the pods up.  (A binding that is tried again finds itself made.)"""
        self.api.create_many(work.gang("wall", 5, cpu=8, run=6000, scheduler="sluice"))
        self.runs("wall")
        self.api.create_many(work.gang("lost", 2, cpu=8, run=6000, scheduler="sluice"))
        self.runs("lost", "waiting")
        assert self.d.request("POST", "/v1/jobs/default/lost/hold")[0] == 200
        self.api.delete_all("pods", "default", labels="scheduling.x-k8s.io/pod-group=wall", grace=0)
        until(lambda: list(self.d.jobs()) == ["lost"], message="the wall is gone")
        self.wire.mute()
        assert self.d.request("POST", "/v1/jobs/default/lost/release")[0] == 200
        until(lambda: len(self.placed("lost")) == 2, message="the bindings are made")
        self.wire.refuse()
        self.wire.cut()
        self.wire.unmute()
        until(lambda: self.d.metrics()["sluice_bindings_looked_up_total"] > 0, message="the daemon looks up what became of a binding")
        self.wire.accept()
        self.runs("lost")
        self.api.delete_all("pods", "default", grace=0)
        until(lambda: not self.d.jobs(), message="the gang is gone")

    def group(self, version, name, size, **spec):
        self.api.request("POST", f"/apis/{version}/namespaces/default/podgroups",
                         {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec})  # fmt: skip
        if version == NATIVE:
            self.api.create_many([work.pod(f"{name}-{i}", cpu=8, run=6000, scheduler="sluice", schedulingGroup={"podGroupName": name}) for i in range(size)])
        else:
            self.api.create_many([work.pod(f"{name}-{i}", cpu=8, run=6000, scheduler="sluice", labels={LABEL[version]: name}) for i in range(size)])

    def groups(self):
        """PodGroups of three kinds: some run, the others wait, and their statuses say why."""
        self.group(OLD, "g", 2, minMember=2)
        self.group(NATIVE, "n", 2, schedulingPolicy={"gang": {"minCount": 2}})
        self.runs("g")
        self.runs("n")
        self.group(OLD, "w", 6, minMember=6)
        self.group(OLDER, "s", 6, minMember=6)
        self.group(NATIVE, "nw", 6, schedulingPolicy={"gang": {"minCount": 6}})
        for version, name in ((OLD, "w"), (OLDER, "s"), (NATIVE, "nw")):
            path = f"/apis/{version}/namespaces/default/podgroups/{name}"
            until(lambda path=path: "sluice.sh/reason" in self.api.request("GET", path)["metadata"]["annotations"], message=f"{name} is told why it waits")
            for i in range(6):
                self.api.delete("pods", f"{name}-{i}", "default", grace=0)
        until(lambda: set(self.d.jobs("default")) == {"g", "n"}, message="those that waited are gone")

    def set_of(self, kind, name, namespace="default", scheduler="sluice"):
        p = work.pod(name, cpu=1, restart="Always", scheduler=scheduler)
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": name}}, "template": {"metadata": {"labels": {"a": name}}, "spec": p["spec"]}}
        if kind == "StatefulSet":
            spec["serviceName"] = name
        self.api.create({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec})
        until(lambda: len(self.placed(name, namespace)) == 1, message=f"{kind} {name} runs")

    def held_work(self):
        """A held Job is released; the FluxJob of a Deployment follows its size."""
        self.cluster.namespace(HELD, labels={"sluice.sh/hold": "true"})
        self.api.create(work.job("kept", pods=1, cpu=1, run=6000, namespace=HELD))
        self.runs("kept", namespace=HELD)
        self.set_of("Deployment", "scaled", HELD, scheduler=None)
        self.cluster.kubectl("scale", "-n", HELD, "deployment/scaled", "--replicas=2")
        until(lambda: any(f["spec"].get("name") == "scaled" and f["spec"].get("nodes") == 2 for f in self.api.list("fluxjobs", HELD)),
              message="the FluxJob has the new size")  # fmt: skip

    def resizes(self):
        for kind, name in (("Deployment", "web"), ("ReplicaSet", "bare-set"), ("StatefulSet", "db")):
            self.set_of(kind, name)
            until(lambda name=name: name in self.d.jobs("default"), message=f"{name} is known")
            self.sluice("resize", name, 2)
            until(lambda name=name: len(self.placed(name)) == 2, message=f"{name} has its new size")
        labels = {"sluice.sh/group": "bare", "sluice.sh/min-size": "1"}
        self.api.create_many([work.pod(f"pod-{i}", cpu=1, run=6000, scheduler="sluice", labels=labels) for i in range(2)])
        until(lambda: len(self.placed("pod-")) == 2, message="bare pods run")
        self.runs("bare")
        self.sluice("resize", "bare", 1)
        until(lambda: len(self.placed("pod-")) == 1, message="one of them is evicted")

    def callers(self):
        """A caller without a right at the HTTPS port."""
        port = self.d.port("https")
        (self.d.folder / "user").write_text(self.cluster.kubectl("create", "token", "sluice", "-n", NAMESPACE).strip())
        done = subprocess.run([program("sluice"), "jobs", "--server", f"https://127.0.0.1:{port}", "--token", self.d.folder / "user", "--insecure"],
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 1 and "not allowed" in done.stderr, done

    def lost_lease(self):
        self.api.delete("leases", "sluice", NAMESPACE)
        until(lambda: self.api.get("leases", "sluice", NAMESPACE)["spec"]["holderIdentity"], message="the lease is made anew")

    def certificates(self):
        """The Secrets are damaged, then deleted, while the daemon is away."""
        secrets = ("sluice-https", "sluice-webhook")
        junk = "bm90IGEgY2VydGlmaWNhdGU="
        good = lambda s: self.api.get("secrets", s, NAMESPACE)["data"]["tls.crt"] not in ("", junk)  # noqa: E731
        self.d.stop()
        for s in secrets:
            self.api.patch("secrets", s, {"data": {"tls.crt": junk}}, namespace=NAMESPACE)
        self.d.start()
        until(lambda: all(map(good, secrets)), message="the certificates are mended")
        self.d.stop()
        for s in secrets:
            self.api.delete("secrets", s, NAMESPACE)
        self.d.start()
        until(lambda: all(map(good, secrets)), message="the certificates are made anew")
        until(lambda: self.d.metrics()["sluice_leader"] == 1, message="the daemon leads again")

    def clean(self):
        for kind, name, space in (("jobs", "kept", HELD), ("deployments", "scaled", HELD), ("deployments", "web", "default"),
                                  ("replicasets", "bare-set", "default"), ("statefulsets", "db", "default")):  # fmt: skip
            self.api.delete(kind, name, space, propagation="Background", missing_ok=True)
        self.api.delete_all("pods", "default", grace=0)
        self.api.delete("customresourcedefinitions", ZONES["metadata"]["name"], None, missing_ok=True)
        self.api.resources = None


def unused(cluster, since):
    """Rules of the account that no request of its used: {(group, resource, verb, name or "")}."""
    asked = chart.asked(cluster)[since:]
    kinds, named = {r[:3] for r in asked}, {r[:4] for r in asked}
    return {rule for rule in chart.granted(cluster) if (rule not in named if rule[3] else rule[:3] not in kinds)}

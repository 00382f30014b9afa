"""The model of the API server is honest: the scripts of tests/world/honest.c, carried out on a real one, see the
same.  What differs on purpose is in EXPECTED, with its reason."""

import subprocess
from pathlib import Path

from cluster.api import ApiError
from cluster.patience import until
from cluster.work import condition, job, pod

ROOT = Path(__file__).resolve().parents[2]

# what: (in the model, on a real server, why it may differ)
EXPECTED = {}


def model():
    out = subprocess.run([ROOT / "build/tests/world/world", "--honest"], check=True, capture_output=True, text=True).stdout
    return [tuple(line.split(": ", 1)) for line in out.splitlines()]


class Script:
    def __init__(self, api, ns):
        self.api, self.ns, self.seen = api, ns, []

    def say(self, what, seen):
        self.seen.append((what, str(seen)))

    def answer(self, what, call):
        words = {404: "not_found", 409: "conflict", 422: "invalid", 429: "retryable"}
        try:
            call()
            self.say(what, "ok")
        except ApiError as e:
            self.say(what, words.get(e.status, e.status))

    def find(self, kind, name):
        try:
            return self.api.get(kind, name, self.ns)
        except ApiError as e:
            if e.status != 404:
                raise
            return None

    def presence(self, kind, name):
        o = self.find(kind, name)
        return "gone" if o is None else "going" if "deletionTimestamp" in o["metadata"] else "there"

    def pods(self, prefix, owned):
        return sum(
            p["metadata"]["name"].startswith(prefix)
            and "deletionTimestamp" not in p["metadata"]
            and (not owned or bool(p["metadata"].get("ownerReferences")))
            for p in self.api.list("pods", self.ns)
        )

    def settled(self, test):
        until(lambda: test() or None)

    # ---- as in honest.c ----

    def binding(self, nodes):
        gates = [{"name": "example.com/wait"}]
        for name, extra in (("a", {}), ("b", {"schedulingGates": gates}), ("c", {}), ("d", {})):
            p = pod(name, run=2, namespace=self.ns, scheduler="nobody", **extra)
            if name == "c":
                p["metadata"]["finalizers"] = ["example.com/hold"]
            self.api.create(p)
        bind = lambda name, node: lambda: self.api.bind(name, node, self.ns)
        evict = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b", "namespace": self.ns}}
        self.answer("bind a pod", bind("a", nodes[0]))
        self.answer("bind it again", bind("a", nodes[0]))
        self.answer("bind it to another node", bind("a", nodes[1]))
        self.answer("bind a pod with a gate", bind("b", nodes[0]))
        self.answer("make a pod of the same name", lambda: self.api.create(pod("a", namespace=self.ns)))
        self.api.delete("pods", "c", self.ns)
        self.say("delete a pod with a finalizer", self.presence("pods", "c"))
        self.say("its generation", self.find("pods", "c")["metadata"].get("generation"))
        self.answer("bind a pod that is going", bind("c", nodes[0]))
        self.api.patch("pods", "c", {"metadata": {"finalizers": None}}, self.ns)
        self.say("remove the finalizer", self.presence("pods", "c"))
        self.api.delete("pods", "d", self.ns)
        self.say("delete a pod without a node", self.presence("pods", "d"))
        self.answer("bind a pod that is gone", bind("d", nodes[0]))
        path = self.api.path("pods", "b", self.ns, "eviction")
        self.answer("evict a pod without a node", lambda: self.api.request("POST", path, evict))
        self.say("it is then", self.presence("pods", "b"))
        until(lambda: self.find("pods", "a")["status"].get("phase") in ("Succeeded", "Failed") or None)
        self.say("a pod that was bound ends", self.find("pods", "a")["status"]["phase"])

    def status(self, name):
        return self.api.get("jobs", name, self.ns)["status"]

    def jobs(self):
        for name, n, run in (("ja", 3, 1), ("jb", 2, 600), ("jc", 2, 600), ("jd", 2, 600), ("je", 2, 600)):
            self.api.create(job(name, pods=n, namespace=self.ns, run=run, cpu="500m"))
        self.settled(lambda: condition({"status": self.status("ja")}, "Complete"))
        self.settled(lambda: all(self.status(j).get("active") == 2 for j in ("jb", "jc", "jd", "je")))
        ja = self.api.get("jobs", "ja", self.ns)
        self.say("a Job completes, succeeded", ja["status"]["succeeded"])
        self.say("its condition", "Complete" if condition(ja, "Complete").get("status") == "True" else "none")
        self.say("its pods are kept", self.pods("ja-", True))
        self.say("pods of a Job that runs, active", self.status("jb")["active"])
        version = self.api.list_full("pods", self.ns)["metadata"]["resourceVersion"]
        self.api.delete("jobs", "jb", self.ns, propagation="Background")
        self.say("delete a Job, background", self.presence("jobs", "jb"))
        self.api.delete("jobs", "jc", self.ns, propagation="Foreground")
        self.say("delete a Job, foreground", self.presence("jobs", "jc"))
        self.api.delete("jobs", "jd", self.ns, propagation="Orphan")
        self.say("delete a Job, orphan", self.presence("jobs", "jd"))
        self.settled(lambda: all(self.presence("jobs", j) == "gone" for j in ("jb", "jc", "jd")))
        self.settled(lambda: self.pods("jb-", False) == 0)
        self.say("pods left, background", self.pods("jb-", False))
        self.say("the Job, foreground, in the end", self.presence("jobs", "jc"))
        gone = {}
        for kind in ("jobs", "pods"):
            for what, obj in self.api.watch(kind, self.ns, version=version, timeout=3):
                name = obj["metadata"].get("name", "")
                if what == "DELETED" and name.startswith("jc"):
                    gone[name] = int(obj["metadata"]["resourceVersion"])
        last = max(v for k, v in gone.items() if k != "jc")
        self.say("its pods went before it", "yes" if last <= gone["jc"] else "no")
        self.say("the Job, orphan, in the end", self.presence("jobs", "jd"))
        self.say("its pods are there", self.pods("jd-", False))
        self.say("with an owner", self.pods("jd-", True))
        self.api.patch("jobs", "je", {"spec": {"suspend": True}}, self.ns)
        self.settled(lambda: not self.status("je").get("active") and self.pods("je-", False) == 0)
        self.settled(lambda: condition({"status": self.status("je")}, "Suspended").get("status") == "True")
        self.say("suspend a Job that runs, pods", self.pods("je-", False))
        self.say("active", self.status("je").get("active", 0))
        self.say("condition Suspended", condition({"status": self.status("je")}, "Suspended")["status"])
        self.say("startTime", "there" if self.status("je").get("startTime") else "none")
        self.api.patch("jobs", "je", {"spec": {"suspend": False}}, self.ns)
        self.settled(lambda: self.status("je").get("active") == 2)
        self.say("resume it, active", self.status("je")["active"])
        self.say("startTime again", "there" if self.status("je").get("startTime") else "none")

    def sets(self):
        template = pod("x", cpu="500m", restart="Always", labels={"app": "da"})
        spec = {"replicas": 3, "selector": {"matchLabels": {"app": "da"}},
                "template": {"metadata": {"labels": {"app": "da"}}, "spec": template["spec"]}}
        meta = {"name": "da", "namespace": self.ns}
        self.api.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
        self.settled(lambda: self.pods("da-", True) == 3)
        self.say("a Deployment, pods", self.pods("da-", True))
        sets = self.api.list("replicasets", self.ns)
        self.say("ReplicaSets", len(sets))
        self.say("replicas of the ReplicaSet", sets[0]["spec"]["replicas"])
        self.api.patch("deployments", "da", {"spec": {"replicas": 1}}, self.ns)
        self.settled(lambda: self.pods("da-", True) == 1)
        self.say("scaled down, pods", self.pods("da-", True))
        self.api.delete("deployments", "da", self.ns, propagation="Background")
        self.say("delete it", self.presence("deployments", "da"))
        self.settled(lambda: not self.api.list("replicasets", self.ns) and self.pods("da-", False) == 0)
        self.say("ReplicaSets left", len(self.api.list("replicasets", self.ns)))
        self.say("pods left", self.pods("da-", False))


def test_the_model_is_honest(cluster, namespace):
    script = Script(cluster.admin, namespace)
    script.binding(sorted(n["metadata"]["name"] for n in cluster.admin.list("nodes"))[:2])
    script.jobs()
    script.sets()
    here = model()
    assert [w for w, _ in here] == [w for w, _ in script.seen], "the two scripts are not the same"
    differ = [
        f"{what}: {a} in the model, {b} on the server"
        for (what, a), (_, b) in zip(here, script.seen)
        if a != b and EXPECTED.get(what, ())[:2] != (a, b)
    ]
    print(f"{len(here)} observations compared")
    assert not differ, "\n".join(differ)

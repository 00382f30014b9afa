"""The model of the API server is honest: the scripts of tests/world/honest.c, carried out on a real one, see the
same.  What differs on purpose is in EXPECTED, with its reason."""

import base64
import http.server
import json
import ssl
import subprocess
import threading
import time
from pathlib import Path

from cluster.api import ApiError
from cluster.patience import until
from cluster.work import condition, job, pod

ROOT = Path(__file__).resolve().parents[2]

# what: (in the model, on a real server, why it may differ)
EXPECTED = {
    "from long ago": ("410", "ADDED MODIFIED MODIFIED DELETED", "a server that has just started forgets nothing yet"),
}


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

    # ---- watches, lists, patches ----

    def events(self, what, name, version):
        """The events of one pod from a version on, until nothing comes for a while."""
        try:
            seen = [t for t, o in self.api.watch("pods", self.ns, version=version, timeout=3) if o["metadata"]["name"] == name]
            self.say(what, " ".join(seen))
        except ApiError as e:
            self.say(what, e.status)

    def watches(self):
        before = self.api.list_full("pods", self.ns)["metadata"]["resourceVersion"]
        p = pod("wa", run=2, namespace=self.ns, scheduler="nobody")
        p["metadata"]["finalizers"] = ["example.com/hold"]
        self.api.create(p)
        self.answer("patch a pod", lambda: self.api.patch("pods", "wa", {"metadata": {"annotations": {"x": "1"}}}, self.ns))
        second = self.find("pods", "wa")["metadata"]["resourceVersion"]
        self.api.delete("pods", "wa", self.ns, grace=0)
        self.api.patch("pods", "wa", {"metadata": {"finalizers": None}}, self.ns)
        self.events("a watch sees", "wa", before)
        self.events("from a later version", "wa", second)
        last = self.api.list_full("pods", self.ns)["metadata"]["resourceVersion"]
        self.events("from the last version", "wa", last)
        self.events("from long ago", "wa", 1)
        stream = self.api.watch("pods", self.ns, version=last, bookmarks=True, seconds=70)
        marks = [o["metadata"] for what, o in stream if what == "BOOKMARK"]
        good = marks and all("resourceVersion" in m and "name" not in m for m in marks)
        self.say("a bookmark has a version and no name", "yes" if good else "no")

    def lists(self):
        self.api.delete_all("pods", self.ns, grace=0)
        self.settled(lambda: not self.api.list("pods", self.ns))
        for i in range(5):
            self.api.create(pod(f"la{i}", namespace=self.ns, scheduler="nobody"))
        pages = [self.api.list_full("pods", self.ns, limit=2)]
        self.api.delete("pods", "la4", self.ns, grace=0)
        self.api.create(pod("lb0", namespace=self.ns, scheduler="nobody"))
        while pages[-1]["metadata"].get("continue"):
            pages.append(self.api.list_full("pods", self.ns, limit=2, **{"continue": pages[-1]["metadata"]["continue"]}))
        names = [p["metadata"]["name"] for page in pages for p in page["items"]]
        self.say("pages of two", len(pages))
        self.say("pods in them", sum(n.startswith("la") for n in names))
        self.say("one that was deleted meanwhile", names.count("la4"))
        self.say("one that was made meanwhile", names.count("lb0"))

    def patches(self):
        gates = [{"name": "example.com/wait"}]
        self.api.create(pod("pa", namespace=self.ns, scheduler="nobody", schedulingGates=gates))
        old = self.find("pods", "pa")["metadata"]["resourceVersion"]
        patch = lambda kind, name, body, type="merge": lambda: self.api.patch(kind, name, body, self.ns, type=type)
        versioned = {"metadata": {"resourceVersion": old, "annotations": {"x": "1"}}}
        self.answer("patch with its version", patch("pods", "pa", versioned))
        self.answer("patch with an old version", patch("pods", "pa", versioned))
        other = {"metadata": {"uid": "0000", "annotations": {"x": "2"}}}
        self.answer("patch with another uid", patch("pods", "pa", other))
        self.say("its generation after patches of metadata", self.find("pods", "pa")["metadata"].get("generation"))
        self.api.create(job("pj", pods=1, namespace=self.ns, run=600, cpu="500m"))
        suspended = job("pk", pods=1, namespace=self.ns, run=600, cpu="500m")
        suspended["spec"]["suspend"] = True
        self.api.create(suspended)
        self.settled(lambda: self.status("pj").get("active") == 1)
        self.settled(lambda: condition({"status": self.status("pk")}, "Suspended").get("status") == "True")
        gate = {"spec": {"template": {"spec": {"schedulingGates": [{"name": "fluxqueue"}]}}}}
        self.answer("gate the template of a Job that runs", patch("jobs", "pj", gate, "strategic"))
        self.answer("gate the template of a suspended Job", patch("jobs", "pk", gate, "strategic"))
        self.answer("resume it", patch("jobs", "pk", {"spec": {"suspend": False}}))
        self.settled(lambda: self.pods("pk-", True) == 1)
        self.say("its pods", self.pods("pk-", True))
        gated = [p for p in self.api.list("pods", self.ns) if p["metadata"]["name"].startswith("pk-")]
        self.say("they are gated", "yes" if gated[0]["spec"].get("schedulingGates") else "no")

    # ---- admission ----

    def hook(self, url, ca):
        rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
        self.api.apply({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                        "metadata": {"name": "honest"},
                        "webhooks": [{"name": "honest.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                                      "failurePolicy": "Ignore", "timeoutSeconds": 2, "rules": [rule],
                                      "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.ns}},
                                      "clientConfig": {"url": url, "caBundle": ca}}]})
        # A new configuration takes a moment to reach the server's admission.
        time.sleep(3)

    def admission(self, pki):
        ca = base64.b64encode((pki / "ca.crt").read_bytes()).decode()
        server = http.server.HTTPServer(("127.0.0.1", 0), Webhook)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pki / "apiserver.crt", pki / "apiserver.key")
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.hook("https://127.0.0.1:1/", ca)
        self.answer("a Job whose webhook does not answer",
                    lambda: self.api.create(job("ha", pods=1, namespace=self.ns, run=600, cpu="500m")))
        self.say("it is suspended", "yes" if self.find("jobs", "ha")["spec"].get("suspend") else "no")
        self.hook(f"https://127.0.0.1:{server.server_port}/", ca)
        self.answer("a Job whose webhook answers",
                    lambda: self.api.create(job("hb", pods=1, namespace=self.ns, run=600, cpu="500m")))
        spec = self.find("jobs", "hb")["spec"]
        self.say("this one is suspended", "yes" if spec.get("suspend") else "no")
        self.say("and its template gated", "yes" if spec["template"]["spec"].get("schedulingGates") else "no")
        time.sleep(3)
        self.say("its pods after a while", self.pods("hb-", True))
        self.api.delete("mutatingwebhookconfigurations", "honest", None)
        server.shutdown()
        server.server_close()

    # ---- StatefulSets ----

    def stateful(self, name, policy):
        template = pod("x", cpu="500m", restart="Always", labels={"app": name})
        self.api.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": self.ns},
                         "spec": {"replicas": 3, "serviceName": name, "podManagementPolicy": policy,
                                  "selector": {"matchLabels": {"app": name}},
                                  "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}}})

    def statefulsets(self):
        version = self.api.list_full("pods", self.ns)["metadata"]["resourceVersion"]
        self.stateful("sa", "OrderedReady")
        ready = lambda p: any(c["type"] == "Ready" and c["status"] == "True" for c in p.get("status", {}).get("conditions", []))
        self.settled(lambda: sum(p["metadata"]["name"].startswith("sa-") and ready(p) for p in self.api.list("pods", self.ns)) == 3)
        self.say("a StatefulSet, pods", self.pods("sa-", True))
        made, done, good = 0, set(), True
        for what, p in self.api.watch("pods", self.ns, version=version, timeout=3):
            if not p["metadata"]["name"].startswith("sa-") or what == "DELETED":
                continue
            if what == "ADDED":
                good &= made <= len(done)
                made += 1
            elif ready(p):
                done.add(p["metadata"]["name"])
        self.say("each after the one before was ready", "yes" if good else "no")
        uid = self.find("pods", "sa-0")["metadata"]["uid"]
        self.api.delete("pods", "sa-0", self.ns, grace=0)
        again = lambda: self.find("pods", "sa-0")
        self.settled(lambda: again() and again()["metadata"]["uid"] != uid and ready(again()))
        self.say("a pod of it that is deleted comes again", "yes")
        version = self.api.list_full("pods", self.ns)["metadata"]["resourceVersion"]
        self.api.patch("statefulsets", "sa", {"spec": {"replicas": 1}}, self.ns)
        self.settled(lambda: self.pods("sa-", True) == 1)
        self.settled(lambda: sum(p["metadata"]["name"].startswith("sa-") for p in self.api.list("pods", self.ns)) == 1)
        gone = [p["metadata"]["name"] for what, p in self.api.watch("pods", self.ns, version=version, timeout=3) if what == "DELETED"]
        self.say("scaled down, they go", " ".join(n for n in gone if n.startswith("sa-")))
        self.stateful("sb", "Parallel")
        self.settled(lambda: self.pods("sb-", True) == 3)
        self.say("a parallel one, pods", self.pods("sb-", True))
        self.api.delete("statefulsets", "sa", self.ns, propagation="Background")
        self.settled(lambda: self.pods("sa-", False) == 0)
        self.say("pods left of a deleted one", self.pods("sa-", False))


class Webhook(http.server.BaseHTTPRequestHandler):
    """Holds every Job, as sluiced's webhook does: suspended, its template gated."""

    def do_POST(self):
        uid = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]["uid"]
        ops = [{"op": "add", "path": "/spec/suspend", "value": True},
               {"op": "add", "path": "/spec/template/spec/schedulingGates", "value": [{"name": "fluxqueue"}]}]
        patch = base64.b64encode(json.dumps(ops).encode()).decode()
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                  "response": {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": patch}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def test_the_model_is_honest(cluster, namespace):
    script = Script(cluster.admin, namespace)
    script.binding(sorted(n["metadata"]["name"] for n in cluster.admin.list("nodes"))[:2])
    script.jobs()
    script.sets()
    script.watches()
    script.lists()
    script.patches()
    script.admission(cluster.pki)
    script.statefulsets()
    here = model()
    assert [w for w, _ in here] == [w for w, _ in script.seen], "the two scripts are not the same"
    differ = [
        f"{what}: {a} in the model, {b} on the server"
        for (what, a), (_, b) in zip(here, script.seen)
        if a != b and EXPECTED.get(what, ())[:2] != (a, b)
    ]
    print(f"{len(here)} observations compared")
    assert not differ, "\n".join(differ)

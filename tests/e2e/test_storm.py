"""An API server that answers 429 or 409 to most requests for as long as the work lasts."""

import base64
import json
import random
import ssl
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cluster import ApiError, work
from cluster.audit import Audit

from .conftest import until
from .daemon import Sluiced

CLUSTER = {  # room for the gangs of both storms: those of the first still run in the second
    "node_list": [{"name": "node", "count": 13, "cpu": 8}],
    "args": {"apiserver": ["--enable-priority-and-fairness=false", "--max-requests-inflight=40", "--max-mutating-requests-inflight=2"]},
}
GANGS, SIZE = 20, 4


def test_a_storm_of_429(module_cluster):
    """Every gang starts whole and nothing is bound twice, though the server refuses writes by the hundred."""
    admin, over = module_cluster.admin, threading.Event()

    def noise():
        """Writes of another client, which uses every request that the server has free."""
        while not over.is_set():
            try:
                admin.patch("namespaces", "default", {"metadata": {"annotations": {"noise": "x" * 1000}}}, None)
            except (ApiError, OSError):
                pass

    with Sluiced(module_cluster) as d:
        others = [threading.Thread(target=noise) for _ in range(4)]
        for t in others:
            t.start()
        try:
            for i in range(GANGS):
                admin.create_many(work.gang(f"g{i}", SIZE, cpu=1, namespace="default", run=600, scheduler="sluice"))
            until(lambda: sum(bool(p["spec"].get("nodeName")) for p in admin.list("pods", "default")) == GANGS * SIZE, 300,
                  "every gang has its nodes")  # fmt: skip
            throttled = d.metrics()["sluice_api_throttled_total"]
        finally:
            over.set()
            for t in others:
                t.join()
        print(f"{GANGS * SIZE} pods bound, {throttled:.0f} answers 429")
        assert throttled >= 10, "no storm: this shows nothing"
        until(lambda: all(j["state"] == "running" for j in d.jobs("default").values()) and len(d.jobs("default")) == GANGS)
        assert not Audit(module_cluster.audit_log).bound_twice("default")
        assert d.metrics()["sluice_audit_differences_total"] == 0


@contextmanager
def conflicts(cluster, share, seconds):
    """For some time a webhook of another user answers 409 to a share of all bindings; yields how many it has
    refused."""
    until_s, count, chance = time.monotonic() + seconds, {"409": 0, "asked": 0}, random.Random(20)

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            refuse = time.monotonic() < until_s and chance.random() < share
            count["asked"] += 1
            count["409"] += refuse
            answer = {"uid": review["request"]["uid"], "allowed": not refuse}
            if refuse:
                answer["status"] = {"code": 409, "reason": "Conflict", "message": "the object has been modified"}
            body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cluster.pki / "apiserver.crt", cluster.pki / "apiserver.key")
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ca = base64.b64encode((cluster.pki / "ca.crt").read_bytes()).decode()
    cluster.admin.create({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "conflicts"},
        "webhooks": [{
            "name": "conflicts.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/", "caBundle": ca},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}],
        }],
    })  # fmt: skip
    try:
        yield count
    finally:
        cluster.admin.delete("validatingwebhookconfigurations", "conflicts", None)
        server.shutdown()
        server.server_close()


def test_a_storm_of_409(module_cluster):
    """A binding that was answered with 409 does not count as made: every gang starts whole once the storm is over."""
    admin = module_cluster.admin
    space = "conflicts"
    admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}})
    with Sluiced(module_cluster) as d, conflicts(module_cluster, 0.7, 30) as count:
        for i in range(5):
            admin.create_many(work.gang(f"c{i}", SIZE, cpu=1, namespace=space, run=600, scheduler="sluice"))
        until(lambda: sum(bool(p["spec"].get("nodeName")) for p in admin.list("pods", space)) == 5 * SIZE, 300,
              "every pod has its node")  # fmt: skip
        print(f"{5 * SIZE} pods bound, {count['409']} of {count['asked']} bindings answered 409")
        assert count["409"] >= 5, "no storm: this shows nothing"
        until(lambda: all(j["state"] == "running" for j in d.jobs(space).values()) and len(d.jobs(space)) == 5)
        assert not Audit(module_cluster.audit_log).bound_twice(space)
        assert d.metrics()["sluice_audit_differences_total"] == 0

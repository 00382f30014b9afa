"""The admission webhook on a real API server: its certificates, its notes, and that it fails open."""

import copy
import os
import subprocess
import time
from pathlib import Path

import pytest
import yaml

from cluster import ApiError, work
from cluster.cluster import kubectl
from cluster.ports import free_ports

from .conftest import crds, until
from .daemon import ROOT, Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 2, "cpu": 4}]}
SECRET = ("secrets", "sluice-webhook", "sluice-system")


def documented(first, port):
    """The line of docs/held.md that begins with this text, with this machine's name and port: a daemon outside the
    cluster."""
    [line] = [x for x in (ROOT / "docs" / "held.md").read_text().splitlines() if x.startswith(first)]
    return line.replace("sluice.example.org", "localhost").replace(":9443", f":{port}")


@pytest.fixture(scope="module")
def webhook(module_cluster):
    """The shipped configuration for a daemon outside the cluster, made with the command of docs/held.md; and the
    daemon."""
    crds(module_cluster)
    (port,) = free_ports(1)
    env = module_cluster.env("admin")
    env["PATH"] = f"{Path(kubectl()).parent}:{env.get('PATH', os.environ['PATH'])}"
    typed = subprocess.run(["sh", "-ec", documented("sed ", port)], cwd=ROOT, env=env, capture_output=True, text=True)
    assert typed.returncode == 0, typed.stderr
    hooks = module_cluster.admin.get("mutatingwebhookconfigurations", "sluice", None)["webhooks"]
    assert [h["clientConfig"]["url"] for h in hooks] == [f"https://localhost:{port}/{path}-v1-sluice" for path in ("mutate", "hold")]
    with Sluiced(module_cluster, config=yaml.safe_load(documented("webhook: ", port))) as d:
        until(lambda: "webhook ready" in d.log.read_text())
        yield d


def pod(name, space, scheduler="sluice", **annotations):
    p = copy.deepcopy(work.gang(name, 1, cpu=1, namespace=space, run=1, scheduler=scheduler)[0])
    p["metadata"]["name"] = name
    p["metadata"].setdefault("annotations", {}).update(annotations)
    return p


def test_notes_who_and_when(webhook, module_cluster, space):
    before = time.time()

    # The API server calls a configuration it has just learned of a moment later.
    def noted():
        name = f"p{time.monotonic_ns()}"
        made = module_cluster.admin.create(pod(name, space, **{"sluice.sh/user": "somebody-else"}))
        a = made["metadata"]["annotations"]
        return a if a["sluice.sh/user"] != "somebody-else" else None

    a = until(noted)
    assert a["sluice.sh/user"] == "admin"
    assert before - 1 < int(a["sluice.sh/seen-us"]) / 1e6 < time.time() + 1


def test_refuses_only_what_is_plainly_wrong(webhook, module_cluster, space):
    admin = module_cluster.admin

    def refused():
        try:
            admin.create(pod(f"w{time.monotonic_ns()}", space, **{"sluice.sh/duration": "soon"}))
        except ApiError as e:
            return str(e)
        return None

    assert "sluice.sh/duration" in until(refused) and "not a duration" in refused()
    made = admin.create(pod("theirs", space, scheduler="default-scheduler", **{"sluice.sh/duration": "soon"}))
    assert "sluice.sh/user" not in made["metadata"]["annotations"], "pods that never asked are untouched"


def test_certificate_survives_and_is_mended(webhook, module_cluster, space):
    admin = module_cluster.admin
    first = admin.get(*SECRET)["data"]
    webhook.stop()
    webhook.start()
    until(lambda: webhook.log.read_text().count("webhook ready") >= 2)
    assert admin.get(*SECRET)["data"] == first, "a good certificate is used again"
    kind, name, namespace = SECRET
    admin.patch(kind, name, {"data": {"tls.crt": "bm90IGEgY2VydGlmaWNhdGU="}}, namespace=namespace)
    webhook.stop()
    webhook.start()
    until(lambda: webhook.log.read_text().count("webhook ready") >= 3)
    mended = admin.get(*SECRET)["data"]
    assert mended["ca.crt"] == first["ca.crt"] and mended["tls.crt"] != first["tls.crt"]
    test_notes_who_and_when(webhook, module_cluster, space)


def test_fails_open(webhook, module_cluster, space):
    webhook.stop()
    made = module_cluster.admin.create(pod("alone", space))
    assert "sluice.sh/seen-us" not in made["metadata"].get("annotations", {})
    webhook.start()
    until(lambda: module_cluster.admin.get("pods", "alone", space)["spec"].get("nodeName"))

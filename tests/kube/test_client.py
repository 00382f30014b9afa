"""The API client on a real API server: statuses, credentials, and servers that die under it."""

import json
import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from cluster.patience import until

ROOT = Path(__file__).resolve().parents[2]
TOOL = Path(os.environ.get("SLUICE_BUILD", ROOT / "build")) / "tests" / "kube" / "request_tool"
CLUSTER = {"node_list": [{"name": "node", "count": 2, "cpu": 8}]}


def call(kubeconfig, *args, timeout=400, env=None):
    """Run the tool; its answers and its counters."""
    done = subprocess.run([str(TOOL), *(["--kubeconfig", str(kubeconfig)] if kubeconfig else []), *args],
                          capture_output=True, text=True, timeout=timeout, env=env)
    lines = [json.loads(s) for s in done.stdout.splitlines()]
    assert done.returncode in (0, 1), done.stderr
    stats = lines.pop()["stats"] if lines and "stats" in lines[-1] else {}
    return lines, stats


def one(kubeconfig, *args, **options):
    lines, _ = call(kubeconfig, *args, **options)
    assert len(lines) == 1
    return lines[0]


def config_map(name):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})


def edited(kubeconfig, path, change):
    """A copy of a kubeconfig (they are written as JSON or YAML) with something changed."""
    import yaml

    doc = yaml.safe_load(Path(kubeconfig).read_text())
    change(doc)
    Path(path).write_text(json.dumps(doc))
    return path


def test_statuses(module_cluster):
    k, maps = module_cluster.kubeconfig, "/api/v1/namespaces/default/configmaps"
    assert one(k, "--body", config_map("one"), "POST", maps)["outcome"] == "ok"
    again = one(k, "--body", config_map("one"), "POST", maps)
    assert (again["outcome"], again["reason"]) == ("exists", "AlreadyExists")
    assert 'cannot create configmaps in namespace "default": 409 Conflict' in again["error"]
    stale = json.loads(config_map("one"))
    stale["metadata"]["resourceVersion"] = "1"
    assert one(k, "--body", json.dumps(stale), "PUT", maps + "/one")["outcome"] == "conflict"
    assert one(k, "GET", maps + "/none")["outcome"] == "not_found"
    bad = one(k, "--body", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"A B"}}', "POST", maps)
    assert bad["outcome"] == "invalid" and "metadata.name" in bad["error"]
    patched = one(k, "--print", "--type", "application/json-patch+json",
                  "--body", '[{"op":"add","path":"/data/b","value":"2"}]', "PATCH", maps + "/one")
    assert json.loads(patched["body"])["data"] == {"a": "1", "b": "2"}
    applied = one(k, "--print", "--type", "application/apply-patch+yaml", "--body", config_map("two"),
                  "PATCH", maps + "/two?fieldManager=test&force=true")
    assert applied["status"] == 201
    assert one(k, "DELETE", maps + "/two")["outcome"] == "ok"


def test_a_version_that_was_compacted_is_gone(make_cluster):
    c = make_cluster("compact", args={"apiserver": ["--etcd-compaction-interval=1s"]}, node_list=[],
                     without=("scheduler", "controller-manager", "kwok"))  # fmt: skip
    old = "/api/v1/namespaces/default/configmaps?resourceVersion=1&resourceVersionMatch=Exact"
    answer = {}

    def gone():
        answer.update(one(c.kubeconfig, "GET", old))
        return answer["outcome"] == "gone"

    until(gone)
    assert answer["status"] == 410 and answer["reason"] == "Expired"


def test_refused_names_verb_and_resource(module_cluster):
    for accept in ("application/json", "application/vnd.kubernetes.protobuf"):
        r = one(module_cluster.sluice_kubeconfig, "--accept", accept, "GET", "/api/v1/namespaces/default/secrets")
        assert r["outcome"] == "refused" and r["reason"] == "Forbidden"
        assert 'cannot list secrets in namespace "default": 403 Forbidden' in r["error"]


def test_token_file_and_plugin(module_cluster, tmp_path):
    assert one(module_cluster.sluice_token_kubeconfig, "GET", "/api/v1/pods?limit=1")["outcome"] == "ok"
    token = (Path(module_cluster.pki) / "sluice.token").read_text().strip()
    plugin = tmp_path / "plugin"
    plugin.write_text("#!/bin/sh\nprintf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","
                      f"\"status\":{{\"token\":\"{token}\"}}}}'\n")
    plugin.chmod(0o755)

    def use(doc):
        doc["users"][0]["user"] = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin",
                                            "interactiveMode": "Never"}}

    k = edited(module_cluster.sluice_token_kubeconfig, tmp_path / "config", use)
    assert one(k, "GET", "/api/v1/pods?limit=1")["outcome"] == "ok"
    plugin.write_text("#!/bin/sh\necho not today >&2; exit 1\n")
    r = one(k, "GET", "/api/v1/pods")
    assert r["outcome"] == "failed" and "exec.command" in r["error"] and "not today" in r["error"]

    def wrong(doc):
        doc["users"][0]["user"] = {"token": "nonsense"}

    r = one(edited(k, tmp_path / "wrong", wrong), "GET", "/api/v1/pods")
    assert r["status"] == 401 and f"{tmp_path}/wrong: users[" in r["error"] and ".user.token" in r["error"]


def test_wrong_authority_names_file_and_field(module_cluster, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-keyout", other / "ca.key", "-out", other / "ca.crt", "-days", "1", "-subj", "/CN=other"],
                   check=True, capture_output=True)

    def use(doc):
        doc["clusters"][0]["cluster"] = {"server": doc["clusters"][0]["cluster"]["server"],
                                         "certificate-authority": str(other / "ca.crt")}

    r = one(edited(module_cluster.kubeconfig, tmp_path / "config", use), "GET", "/version")
    assert r["outcome"] == "failed" and r["tries"] == 0
    assert "unknown authority" in r["error"] and str(other / "ca.crt") in r["error"]
    assert "cluster.certificate-authority" in r["error"]


def test_expired_client_certificate_is_named(module_cluster, tmp_path):
    ca = Path(module_cluster.pki)
    key, csr, crt = tmp_path / "key", tmp_path / "csr", tmp_path / "crt"
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", csr, "-subj", "/O=system:masters/CN=late"], check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", csr, "-CA", ca / "ca.crt", "-CAkey", ca / "ca.key", "-days", "-1",
                    "-out", crt, "-set_serial", "77"], check=True, capture_output=True)

    def use(doc):
        doc["users"][0]["user"] = {"client-certificate": str(crt), "client-key": str(key)}

    r = one(edited(module_cluster.kubeconfig, tmp_path / "config", use), "GET", "/api/v1/nodes")
    assert r["outcome"] == "refused" and "cannot list nodes: 401" in r["error"]
    assert str(crt) in r["error"] and "expired on" in r["error"]


def test_in_cluster(module_cluster, tmp_path):
    # The pod's own folder cannot be made here; the variables alone must lead to a clear message.
    host, port = module_cluster.server.split("//")[1].split(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "HOME": str(tmp_path)}
    r = one(None, "GET", "/version", env=env)
    assert r["outcome"] == "config" and "/var/run/secrets/kubernetes.io/serviceaccount/token" in r["error"]
    r = one(None, "GET", "/version", env={"HOME": str(tmp_path)})
    assert "this is not a pod" in r["error"]


def test_gzip_list(module_cluster):
    big = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big-%d"},
                      "data": {"x": "abc" * 30000}})
    lines, _ = call(module_cluster.kubeconfig, "--count", "8", "--body", big, "POST",
                    "/api/v1/namespaces/default/configmaps")
    assert all(r["outcome"] == "ok" for r in lines)
    (r,), stats = call(module_cluster.kubeconfig, "GET", "/api/v1/namespaces/default/configmaps")
    assert r["bytes"] > 600000 and stats["bytes_in"] < 100000


def test_reads_survive_a_dead_server(module_cluster):
    c = module_cluster

    def murder():
        time.sleep(0.5)
        c.kill("apiserver")
        time.sleep(1)
        c.start("apiserver")

    t = threading.Thread(target=murder)
    t.start()
    lines, stats = call(c.kubeconfig, "--timeout", "180", "--count", "3000", "--inflight", "64", "--qps", "2000",
                        "GET", "/api/v1/nodes?limit=1")
    t.join()
    assert len(lines) == 3000 and {r["outcome"] for r in lines} == {"ok"}
    assert stats["retries"] > 0 and stats["connects"] > 1
    print("reads:", stats)


def test_writes_tell_the_truth(module_cluster):
    """While the server is killed, a write that says ok was made, one that says no (and is not
    uncertain) was not, and none was made twice."""
    c = module_cluster

    def murder():
        time.sleep(0.4)
        c.kill("apiserver")
        time.sleep(0.5)
        c.start("apiserver")

    t = threading.Thread(target=murder)
    t.start()
    lines, stats = call(c.kubeconfig, "--timeout", "180", "--count", "1500", "--inflight", "64", "--qps", "1500",
                        "--body", config_map("w-%d"), "POST", "/api/v1/namespaces/default/configmaps")
    t.join()
    there = {o["metadata"]["name"] for o in c.admin.list("configmaps", "default")}
    made = {f"w-{r['i']}" for r in lines if r["outcome"] == "ok"}
    unsure = {f"w-{r['i']}" for r in lines if r["uncertain"]}
    refused = {f"w-{r['i']}" for r in lines} - made - unsure
    print(f"writes: {len(made)} made, {len(unsure)} unsure, {len(refused)} not made;", stats)
    assert len(lines) == 1500 and made <= there and not (refused & there)
    assert {r["outcome"] for r in lines} <= {"ok", "retryable"}
    assert stats["resets"] or stats["connect_failures"]


def test_goaway_loses_nothing(make_cluster):
    c = make_cluster("goaway", args={"apiserver": ["--goaway-chance=0.02"]}, **CLUSTER)
    lines, stats = call(c.kubeconfig, "--timeout", "180", "--count", "1500", "--inflight", "64",
                        "--body", config_map("g-%d"), "POST", "/api/v1/namespaces/default/configmaps")
    assert {r["outcome"] for r in lines} == {"ok"} and stats["goaways"] > 5
    print("goaway:", stats)


def test_throttling_is_obeyed(make_cluster):
    c = make_cluster("busy", args={"apiserver": ["--enable-priority-and-fairness=false", "--max-requests-inflight=3",
                                                 "--max-mutating-requests-inflight=1"]}, **CLUSTER)
    began = time.monotonic()
    lines, stats = call(c.sluice_kubeconfig, "--timeout", "180", "--count", "400", "--inflight", "64", "GET",
                        "/api/v1/nodes")
    took = time.monotonic() - began
    print("throttled:", stats)
    assert {r["outcome"] for r in lines} == {"ok"} and len(lines) == 400
    # It did happen, and each refusal was followed by a pause: the server asks for a second, so a client that
    # asked again at once would be refused thousands of times in this time.
    assert stats["throttled"] > 0, "the server refused nothing: this shows nothing"
    assert took >= 1, "a client that obeys waits the second that it is told"
    assert stats["throttled"] <= 64 * (took + 1), f"{stats['throttled']} refusals in {took:.1f} s"


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__]))

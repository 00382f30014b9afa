"""The HTTPS port, as the command uses it: which caller may do what, which certificates are trusted, and the answers
to callers without the right."""

import base64
import re
import subprocess

import pytest

from .conftest import until
from .daemon import Sluiced, program

CLUSTER = {"node_list": [{"name": "node", "count": 1, "cpu": 4}]}


def port_of(sluiced):
    until(lambda: "https_port=" in sluiced.log.read_text())
    return re.findall(r"https_port=(\d+)", sluiced.log.read_text())[-1]


def run(*args):
    p = subprocess.run([program("sluice"), *map(str, args)], capture_output=True, text=True, timeout=120)
    return p.returncode, p.stdout, p.stderr


@pytest.fixture
def ask(sluiced, module_cluster, tmp_path):
    port = port_of(sluiced)

    def ask(*command, token=None):
        args = ["--server", f"https://127.0.0.1:{port}", "--insecure"]
        if token:
            file = module_cluster.folder / "pki" / f"{token}.token"
            if token not in ("admin", "sluice"):
                file = tmp_path / "token"
                file.write_text(token)
            args += ["--token", file]
        return run(*command, *args)

    return ask


def test_roles(ask):
    rc, out, err = ask("nodes", token="admin")
    assert rc == 0 and "node-000" in out, err
    rc, out, err = ask("drain", "node-000", token="admin")
    assert rc == 0 and "takes no new work" in out, err
    rc, out, err = ask("nodes", token="sluice")
    assert rc == 1 and not out and '"/v1/nodes" and verb "get"' in err
    rc, out, err = ask("undrain", "node-000", token="sluice")
    assert rc == 1 and not out and '"/v1/nodes/node-000/undrain" and verb "post"' in err
    rc, out, err = ask("nodes")
    assert rc == 1 and not out and "token is needed" in err
    rc, out, err = ask("nodes", token="no-such-token")
    assert rc == 1 and not out and "not valid in this cluster" in err
    rc, out, err = ask("undrain", "node-000", token="admin")
    assert rc == 0, err


def test_a_role_that_only_reads(ask, module_cluster):
    """A ServiceAccount with a ClusterRole for reading may read and do nothing else; when the role is taken away, it
    may not read either."""
    admin = module_cluster.admin
    module_cluster.namespace("readers")
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "readers"}})
    token = admin.request(
        "POST", "/api/v1/namespaces/readers/serviceaccounts/reader/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}},
    )["status"]["token"]  # fmt: skip
    rc, out, err = ask("nodes", token=token)
    assert rc == 1 and "not allowed" in err, "no rights yet"
    rbac = "rbac.authorization.k8s.io"
    admin.create({"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "sluice-reader"},
                  "rules": [{"nonResourceURLs": ["/v1/*"], "verbs": ["get"]}]})  # fmt: skip
    admin.create({"apiVersion": f"{rbac}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "sluice-reader"},
                  "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "sluice-reader"},
                  "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "readers"}]})  # fmt: skip
    until(lambda: ask("nodes", token=token)[0] == 0)
    rc, out, err = ask("jobs", "-o", "json", token=token)
    assert rc == 0 and '"jobs"' in out, err
    rc, out, err = ask("drain", "node-000", token=token)
    assert rc == 1 and "not allowed" in err
    admin.delete("clusterrolebindings", "sluice-reader", None)
    until(lambda: ask("nodes", token=token)[0] == 1, message="what was allowed is forgotten after some seconds")


def test_refused_without_trust(sluiced, ask):
    rc, out, err = run("nodes", "--server", f"https://127.0.0.1:{port_of(sluiced)}")
    assert rc == 1 and "unknown authority" in err


def test_trust_outlives_the_daemon(module_cluster, tmp_path):
    token = module_cluster.folder / "pki" / "admin.token"
    ca = tmp_path / "ca.crt"

    def secret():
        return module_cluster.admin.get("secrets", "sluice-https", "sluice-system")["data"]

    with Sluiced(module_cluster) as d:
        until(lambda: "the certificate in its Secret" in d.log.read_text())
        first = secret()
        ca.write_bytes(base64.b64decode(first["ca.crt"]))
        asked = ["nodes", "--server", f"https://localhost:{port_of(d)}", "--ca", ca, "--token", token]
        rc, out, err = run(*asked)
        assert rc == 0 and "node-000" in out, err
        d.kill()
        d.start()
        until(lambda: d.log.read_text().count("the certificate in its Secret") == 2)
        asked[2] = f"https://localhost:{port_of(d)}"
        rc, out, err = run(*asked)
        assert rc == 0 and "node-000" in out, err
        assert secret() == first
        # Another name than the certificate's is refused.
        asked[2] = f"https://127.0.0.1:{port_of(d)}"
        rc, out, err = run(*asked)
        assert rc == 1 and not out, "the certificate does not speak of 127.0.0.1"


def test_certificate_from_files(module_cluster, tmp_path):
    """The operator's own certificate is replaced while the daemon runs; messages name files that cannot be used."""
    token = module_cluster.folder / "pki" / "admin.token"

    def make(name):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost",
             "-keyout", tmp_path / f"{name}.key", "-out", tmp_path / f"{name}.crt"], check=True, capture_output=True,
        )  # fmt: skip
        return tmp_path / f"{name}.crt", tmp_path / f"{name}.key"

    crt, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    one, two = make("one"), make("two")
    crt.write_bytes(one[0].read_bytes())
    key.write_bytes(one[1].read_bytes())
    with Sluiced(module_cluster, {"serve": {"certificate": str(crt), "key": str(key)}}) as d:
        asked = ["nodes", "--server", f"https://localhost:{port_of(d)}", "--token", token, "--ca"]
        rc, out, err = run(*asked, one[0])
        assert rc == 0, err
        crt.write_bytes(two[0].read_bytes())
        key.write_bytes(two[1].read_bytes())
        until(lambda: run(*asked, two[0])[0] == 0, message="the new certificate is used")
        until(lambda: run(*asked, one[0])[0] == 1, message="and the old one no more")
    key.write_bytes(one[1].read_bytes())
    with pytest.raises(RuntimeError, match=r"serve.certificate: .*(tls.key|tls.crt)"):
        Sluiced(module_cluster, {"serve": {"certificate": str(crt), "key": str(key)}}).start()
    with pytest.raises(RuntimeError, match="serve.certificate: .*absent"):
        Sluiced(module_cluster, {"serve": {"certificate": str(tmp_path / "absent"), "key": str(key)}}).start()

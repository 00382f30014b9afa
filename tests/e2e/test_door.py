"""The HTTPS port, as the command uses it: who may do what, and what the others are told."""

import re
import subprocess

import pytest

from .conftest import until
from .daemon import program

CLUSTER = {"node_list": [{"name": "node", "count": 1, "cpu": 4}]}


@pytest.fixture
def ask(sluiced, module_cluster):
    until(lambda: "https_port=" in sluiced.log.read_text())
    port = re.search(r"https_port=(\d+)", sluiced.log.read_text())[1]

    def ask(*command, token=None):
        args = ["--server", f"https://127.0.0.1:{port}", "--insecure"]
        if token:
            args += ["--token", module_cluster.folder / "pki" / f"{token}.token"]
        p = subprocess.run([program("sluice"), *command, *args], capture_output=True, text=True, timeout=30)
        return p.returncode, p.stdout, p.stderr

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


def test_refused_without_trust(sluiced, ask):
    port = re.search(r"https_port=(\d+)", sluiced.log.read_text())[1]
    p = subprocess.run([program("sluice"), "nodes", "--server", f"https://127.0.0.1:{port}"], capture_output=True, text=True, timeout=30)
    assert p.returncode == 1 and "unknown authority" in p.stderr

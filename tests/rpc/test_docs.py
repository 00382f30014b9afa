"""The blocks of docs/fluxion-clients.md, run as they stand."""

import os
import re
import subprocess
import sys

import pytest

from rpc.alone import ROOT, Alone, jgf, jobspec, program

PAGE = (ROOT / "docs" / "fluxion-clients.md").read_text()
PORT = "127.0.0.1:4242"


def blocks(kind):
    found = re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.S | re.M)
    assert found, f"no block of {kind}"
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The package as a user gets it: built, and installed into a folder."""
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run([ROOT / "python" / "make-wheel", str(out)], check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "pip", "-q", "install", "--no-deps", "--target", str(out / "site"), *map(str, out.glob("*.whl"))],
                   check=True, capture_output=True)
    return out / "site"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "cluster.json").write_text(jgf(nodes=2, cores=4))
    (tmp_path / "job.yaml").write_text(jobspec(2, 3))
    return tmp_path


def python(text, folder, site):
    library = program("src/lib/libsluice.so.0")
    env = {**os.environ, "PYTHONPATH": str(site), "SLUICE_LIBRARY": str(library)}
    if b"__asan_init" in library.read_bytes():  # a sanitized library in a Python that is not; Python's own leaks are not ours
        runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout.strip()
        env |= {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run([sys.executable, "-c", text], cwd=folder, env=env, capture_output=True, text=True, timeout=60)


def test_python_over_grpc(folder, wheel):
    with Alone("--policy", "lonode", graph=jgf(nodes=2, cores=4)) as d:
        done = python(blocks("python")[0].replace(PORT, f"127.0.0.1:{d.port}"), folder, wheel)
    assert (done.stdout, done.stderr) == ("1 False 0\n", "")


def test_python_in_the_process(folder, wheel):
    done = python(blocks("python")[1], folder, wheel)
    assert (done.stdout, done.stderr) == ("1 True 3600\n", "")


def test_python_speaks_every_dialect(folder, wheel):
    with Alone("--policy", "lonode", "--external-service", graph=jgf(nodes=2, cores=4)) as d:
        done = python(f"""
from sluice import ExternalClient, FluenceClient, FluxionClient, FluxnetesClient, Graph, SluiceError
at = "127.0.0.1:{d.port}"
with FluenceClient(at) as f, FluxnetesClient(at) as n, ExternalClient(at) as e:
    a = f.match("team/a", 2, cpu=2)
    print([(x.nodeID, x.tasks) for x in a.nodelist])
    print(n.match("b", 9).allocated, n.match("b", 4).allocated)
    print(e.list_groups(), e.get_group("team/a"))
    g = Graph(e.get_resources())
    print(g.satisfiable(open("job.yaml").read()), len(g.clone().find("status=up")) > 100)
    try:
        Graph("{{")
    except SluiceError as e:
        print(e.errno)
""", folder, wheel)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["[('worker-0x', 2)]", "False True", "['team/a', 'b'] 2", "True True", "22"]


def test_the_role_is_yaml_and_names_our_methods():
    import yaml

    role = yaml.safe_load(blocks("yaml")[0])
    assert role["rules"][0]["nonResourceURLs"] == ["/fluxion.FluxionService/*", "/fluxcli.FluxcliService/*"]


def test_the_start_is_what_the_daemon_takes(folder):
    line = blocks("sh")[0].split()
    d = Alone(*line[2:])
    d.args = [a for i, a in enumerate(d.args) if a not in ("--port", "4242")]
    d.args[d.args.index("cluster.json")] = str(folder / "cluster.json")
    assert line[:2] == ["sluiced", "--standalone"]
    with d:
        pass

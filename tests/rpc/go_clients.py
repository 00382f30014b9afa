"""The official Go library: clients generated from proto/, grpcurl and h2spec.  `make rpc-go` builds the tools
and runs this; its name keeps it out of `make test`, which has no Go tools."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rpc.alone import ROOT, Alone, jgf, jobspec
from rpc.test_docs import PORT, blocks

TOOLS = os.environ["SLUICE_RPC_TOOLS"]


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """A Go module with our programs, the page's, and what the generators make of proto/."""
    folder = tmp_path_factory.mktemp("go") / "proto"
    shutil.copytree(ROOT / "tests" / "rpc" / "go", folder)
    (folder / "doc").mkdir()
    (folder / "doc" / "main.go").write_text(blocks("go")[0].replace(f'"{PORT}"', "os.Args[1]"))
    for into, name in (("", "fluxion"), ("", "fluxcli"), ("fluxnetes", "fluxion")):
        out = folder / into / name
        out.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto' / into}", f"--go_out={out}", f"--go-grpc_out={out}",
                        "--go_opt=paths=source_relative", "--go-grpc_opt=paths=source_relative", f"{name}.proto"],
                       check=True, env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"})
    go = subprocess.run([ROOT / "hack" / "cluster" / "build", "--go"], check=True, capture_output=True, text=True).stdout.strip()
    for name in ("f", "n", "doc"):
        subprocess.run([go, "build", "-mod=mod", "-o", str(folder / f"{name}.bin"), f"./{name}"], cwd=folder, check=True)
    return folder


def run(module, name, *args, cwd=None):
    done = subprocess.run([str(module / f"{name}.bin"), *map(str, args)], capture_output=True, text=True, timeout=120, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def files(tmp_path):
    (tmp_path / "cluster.json").write_text(jgf(nodes=2, cores=4))
    (tmp_path / "job.yaml").write_text(jobspec(2, 2))
    return tmp_path


def test_fluxions_dialect_with_a_dial_before_the_server_is_up(module, files):
    d = Alone()
    client = subprocess.Popen([str(module / "f.bin"), f"127.0.0.1:{d.port}", str(files / "cluster.json"), str(files / "job.yaml")],
                              stdout=subprocess.PIPE, text=True)
    time.sleep(1)
    with d:
        out, _ = client.communicate(timeout=120)
    assert client.returncode == 0 and out.splitlines() == [
        "init INIT_SUCCESS <nil>",
        "match 1 false 0 true ok",
        "match 2 false 0 true ok",
        "match 0 false 0 false Unknown: Allocation was not possible",
        "reserve 4 true 3600 ok",
        "cancel CANCEL_SUCCESS ok",
        "cancel CANCEL_SUCCESS ok",
        "cancel CANCEL_SUCCESS ok",
        "cancel CANCEL_SUCCESS ok",
        "node worker-0x 2",
        "node worker-1x 1",
        "fluxcli team/a 5 ok",
    ]


def test_fluxnetes_dialect(module):
    with Alone("--policy", "lonode", graph=jgf(nodes=2, cores=4)) as d:
        assert run(module, "n", f"127.0.0.1:{d.port}") == [
            "match 1 true false 2 <nil>",
            "match 0 false false 0 <nil>",
            "reserve 3 false true 3600 <nil>",
            "cancel 1 0 ",
            "cancel 0 0 issue resource api client cancel -1: there is no job 1",
            "cancel 1 0 ",
        ]


def test_the_pages_program(module, files):
    with Alone("--policy", "lonode", graph=jgf(nodes=2, cores=4)) as d:
        assert run(module, "doc", f"127.0.0.1:{d.port}", cwd=files) == ["1 false 0"]


def test_grpcurl_as_the_page_has_it():
    with Alone("--policy", "lonode", "--external-service", graph=jgf(nodes=2, cores=4)) as d:
        text = blocks("sh grpcurl")[0].replace(PORT, f"127.0.0.1:{d.port}")
        done = subprocess.run(["bash", "-e", "-c", text], capture_output=True, text=True, timeout=60, env={**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    for said in ("fluxcli.FluxcliService", "grpc.reflection.v1.ServerReflection", '"tasks": 2', '"tasks": 1', '"status": "SERVING"'):
        assert said in done.stdout


#: What h2spec would have otherwise, and why it is so.
KNOWN = {
    "2: Sends invalid connection preface",  # it may be HTTP/1.1: it gets an answer in that, and the connection is closed
}


def h2spec():
    """What it would have otherwise, of the more than ninety things it tries."""
    with Alone(graph=jgf()) as d:
        done = subprocess.run([str(Path(TOOLS) / "h2spec"), "-h", "127.0.0.1", "-p", str(d.port), "-o", "5", "http2", "hpack"],
                              capture_output=True, text=True, timeout=280)
    found = re.search(r"(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed", done.stdout)
    assert found and int(found.group(1)) > 90, done.stdout[-2000:]
    print(found.group(0))
    return set(re.findall(r"× (.*)", done.stdout)) - KNOWN


def test_h2spec():
    """Some of its cases send a frame while the answer to the one before is under way: whichever comes first, nothing may fail, so it runs
    several times and each run counts."""
    for _ in range(4):
        assert not h2spec()

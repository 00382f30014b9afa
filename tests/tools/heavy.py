#!/usr/bin/env python3
"""tools/heavy with a make that only writes down what it is asked for: what it runs, what it leaves out, and what it says."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])
#: Stands in for make, and for the shell that builds a piece.
STUB = """#!/bin/sh
[ "$1" != -ec ] || exec /bin/sh "$@" # it tries what the machine can do
echo "$@" >>"$ASKED"
case "$*" in *"$BROKEN"*) exit 1 ;; *"$SLOW"*) exec sleep 60 ;; esac
"""
checks = failed = 0


def ok(good, what, detail=""):
    global checks, failed
    checks += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {checks} - {what}", flush=True)
    if not good:
        print("".join(f"# {line}\n" for line in str(detail).splitlines()), flush=True)


def heavy(*args, broken="nothing", slow="nothing", by=(), tree=ROOT):
    """(status, what it said, the goals that make was asked for and the pieces that were built)"""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        asked = Path(folder) / "asked"
        for name in ("make", "sh"):
            (Path(folder) / name).write_text(STUB)
            (Path(folder) / name).chmod(0o755)
        env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "ASKED": str(asked), "BROKEN": broken, "SLOW": slow, "SLUICE_CACHE": str(CACHE)}
        done = subprocess.run([*by, tree / "tools/heavy", *args], env=env, capture_output=True, text=True)
        goals = [line.removeprefix("--no-print-directory ") for line in asked.read_text().splitlines()] if asked.exists() else []
        return done.returncode, done.stdout + done.stderr, goals


with tempfile.TemporaryDirectory() as CACHE:
    os.chmod(CACHE, 0o755)
    status, said, goals = heavy("rpc-go", "operators", "versions")
    ok(status == 0 and goals == ["rpc-go", "operators"], "the named suites run, in the order of the list", said)
    ok("versions: left out: no Kubernetes is in the cache" in said and "K8S=1.37.0" in said, "heavy compiles no Kubernetes, and says so", said)

    env = {**os.environ, "SLUICE_CACHE": CACHE, "SLUICE_K8S": "1.35.0"}
    there = Path(subprocess.run([ROOT / "hack/cluster/build", "--where"], env=env, capture_output=True, text=True, check=True).stdout.strip())
    there.mkdir(parents=True)
    (there / "kube-apiserver").touch()
    status, said, goals = heavy("versions")
    ok(status == 0 and goals == ["versions K8S=1.35.0"], "versions runs on the Kubernetes versions in the cache", said)

    status, said, goals = heavy("rpc-go", "operators", "chart-test", broken="operators")
    ok(status == 1 and goals == ["rpc-go", "operators"] and "operators: FAILED" in said, "heavy stops after a suite that fails", said)

    status, said, goals = heavy("--minutes", "0")
    lines = [line for line in said.splitlines() if ": left out: " in line]
    ok(status == 0 and not goals and len(lines) == len(said.splitlines()[-1].partition("left out: ")[2].split(",")), "without time no suite runs, and each has a line", said)
    status, said, goals = heavy("--minutes", "5", "rpc-go", "chart-test")
    ok(status == 0 and goals == ["-c tests/rpc/tools >/dev/null", "rpc-go"] and re.search("chart-test: left out: .* with cluster, helm, older to be built first", said), "one that does not fit is left out, one that does is run, after its programs are compiled", said)
    status, said, goals = heavy("--minutes", "4.1", "rpc-go", broken="rpc/tools")
    ok(status == 1 and len(goals) == 1 and "rpc-go: FAILED: rpc does not build" in said, "a program that does not compile is a failure", said)
    with tempfile.TemporaryDirectory() as quick:  # the same with minutes that are short
        (Path(quick) / "tools").mkdir()
        text = (ROOT / "tools/heavy").read_text().replace("LATE = 25", "LATE = -1.8").replace('("rpc-go", 1,', '("rpc-go", 1.9,')
        (Path(quick) / "tools/heavy").write_text(re.sub(r'("rpc": \(.*), 3, ', r"\1, 0.001, ", text))
        (Path(quick) / "tools/heavy").chmod(0o755)
        (Path(quick) / "tests/rpc").mkdir(parents=True)
        shutil.copy(ROOT / "tests/rpc/tools", Path(quick) / "tests/rpc/tools")
        status, said, goals = heavy("--minutes", "2", "rpc-go", tree=Path(quick), slow="rpc/tools")
        ok(status == 0 and "rpc-go" not in goals and "rpc-go: left out: rpc was not built in time" in said, "one that does not compile in time is left out", said)
        status, said, goals = heavy("--minutes", "2", "rpc-go", tree=Path(quick), slow="rpc-go")
        ok(status == 1 and "rpc-go: FAILED: stopped" in said, "a suite that does not end is stopped, and has failed", said)
    for made in ("tests/rpc/tools", "hack/helm/build"):
        at = Path(subprocess.run([ROOT / made, "--where"], env=env, capture_output=True, text=True, check=True).stdout.strip())
        at.mkdir()
        (at / {"tests/rpc/tools": "h2spec", "hack/helm/build": "helm"}[made]).touch()
    status, said, goals = heavy("--minutes", "2", "rpc-go")
    ok(status == 0 and goals == ["rpc-go"], "a suite whose programs are compiled already needs less time", said)

    with tempfile.TemporaryDirectory() as cut:  # a clone without its history
        for name in ("tools/heavy", "tests/chart/older.py", "Makefile"):
            (Path(cut) / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, Path(cut) / name)
        subprocess.run(["git", "init", "-q", cut], check=True)
        status, said, goals = heavy("chart-test", tree=Path(cut))
        ok(status == 0 and not goals and "chart-test: left out: the history of this clone lacks" in said, "chart-test is left out without an older version to upgrade from", said)

    if os.geteuid() == 0:
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        status, said, goals = heavy("deb-test", "real", by=nobody)
        ok(status == 0 and not goals and said.count("root") >= 2, "suites that need root are left out without it", said)
    status, said, goals = heavy("no-such")
    ok(status == 2 and "image-test" in said, "an unknown name is an error", said)
print(f"1..{checks}")
sys.exit(1 if failed else 0)

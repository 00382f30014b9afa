"""An older Sluice, from the history of this repository: its chart, and its programs, compiled once and kept in the cache."""

import fcntl
import os
import subprocess
from pathlib import Path

from e2e.daemon import ROOT

#: The first that had a chart: an older schema of the store, no Reservations, fewer rules.
COMMIT = "e2edfb2b819959958b5618148659d48798ae3290"


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr + done.stdout)[-2000:]}")
    return done.stdout


def source():
    """Its files; the folder build/ in it holds its sluiced."""
    cache = Path(os.environ.get("SLUICE_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice")
    folder = cache / f"older-{COMMIT[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            try:
                run("git", "-C", ROOT, "cat-file", "-e", f"{COMMIT}^{{commit}}")
            except RuntimeError as e:
                raise RuntimeError(f"the history of the repository lacks {COMMIT}, from which an upgrade is tried: git fetch --unshallow") from e
            archive = folder / "source.tar"
            run("git", "-C", ROOT, "archive", "-o", archive, COMMIT)
            run("tar", "-C", folder, "-xf", archive)
            archive.unlink()
            if not (folder / "build" / "build.ninja").exists():
                run("meson", "setup", folder / "build", "-Dwerror=false", cwd=folder)
            run("ninja", "-C", folder / "build", "sluiced")
            (folder / "complete").touch()
    return folder


def chart():
    return source() / "charts" / "sluice"


def program():
    return source() / "build" / "sluiced"

"""Drives tests/kube/mirror_tool.c: a reflector in a process of its own."""

import json
import os
import queue
import subprocess
import threading
import time
from pathlib import Path

from cluster.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


def tool(name):
    return Path(os.environ.get("SLUICE_BUILD", ROOT / "build")) / "tests" / "kube" / name


class Mirror:
    def __init__(self, kubeconfig, resource, namespace="", page="", journal=""):
        args = [tool("mirror_tool"), kubeconfig, resource, namespace, str(page or 0)]
        if journal:
            args.append(journal)
        self.process = subprocess.Popen(
            [str(a) for a in args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.answers = queue.Queue()
        self.synced = threading.Event()
        self.news = []
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self):
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith(("synced", "trouble")):
                self.news.append(line)
                if line.startswith("synced"):
                    self.synced.set()
            else:
                self.answers.put(line)

    def _ask(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def stats(self):
        self._ask("stats")
        return json.loads(self.answers.get(timeout=PATIENCE_S))

    def cut(self):
        self._ask("cut")
        return self.answers.get(timeout=PATIENCE_S)

    def _lines(self, word):
        self._ask(word)
        lines = []
        while (line := self.answers.get(timeout=PATIENCE_S)) != ".":
            lines.append(line)
        return sorted(lines)

    def state(self):
        return self._lines("state")

    def fold(self):
        return self._lines("fold")

    def wait_until(self, want):
        """Until the mirror's state is `want` (sorted lines); returns the last state seen."""
        end = time.monotonic() + PATIENCE_S
        while (now := self.state()) != want and time.monotonic() < end:
            time.sleep(0.2)
        return now

    def close(self):
        if self.process.poll() is None:
            try:
                self._ask("quit")
                self.process.wait(PATIENCE_S)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def fresh(api, resource, namespace=None):
    """What a fresh list says, in the same form."""
    lines = []
    for o in api.list(resource, namespace):
        m = o["metadata"]
        lines.append(f"{m.get('namespace', '')}/{m['name']} {m['uid']} {m['resourceVersion']}")
    return sorted(lines)

"""Processes that outlive the command that started them, known by a file in the cluster's folder."""

import os
import signal
import subprocess
import time
from pathlib import Path

from .patience import PATIENCE_S


def process_state(pid):
    """(state, start time) of a process, None when there is none or nothing of it runs any more."""
    try:
        fields = _fields(f"/proc/{pid}/stat")
        # The first thread may have ended before the others, which still hold files and ports.
        if fields[0] == "Z" and all(_fields(t / "stat")[0] in "ZX" for t in Path(f"/proc/{pid}/task").iterdir()):
            return None
    except OSError:
        return None
    return fields[0], fields[19]


def _fields(path):
    text = Path(path).read_text()
    return text[text.rindex(")") + 2 :].split()


class Process:
    """One program of a cluster. The pid file holds pid and start time, so that a process that got the same number
    later is never taken for ours."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = Path(folder)
        self.pid_file = self.folder / f"{name}.pid"
        self.log = self.folder / f"{name}.log"
        self._child = None

    @property
    def pid(self):
        """The pid while the process runs, else None."""
        try:
            pid, started = self.pid_file.read_text().split()
        except (OSError, ValueError):
            return None
        if self._child is not None and self._child.pid == int(pid):
            self._child.poll()  # reaps it when it has ended
        now = process_state(pid)
        return int(pid) if now and now[1] == started else None

    def start(self, args, env=None):
        if self.pid:
            raise RuntimeError(f"{self.name} runs already (pid {self.pid})")
        with open(self.log, "ab") as log:
            self._child = subprocess.Popen(
                [str(a) for a in args],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=env,
                start_new_session=True,
            )
        stat = process_state(self._child.pid)
        self.pid_file.write_text(f"{self._child.pid} {stat[1] if stat else 0}\n")

    def signal(self, number):
        pid = self.pid
        if pid:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        return pid

    def wait_gone(self, timeout):
        end = time.monotonic() + timeout
        while self.pid:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        if self._child is not None:
            self._child.poll()
        return True

    def kill(self):
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        if not self.wait_gone(PATIENCE_S):
            raise RuntimeError(f"{self.name} (pid {self.pid}) survives SIGKILL")
        self.pid_file.unlink(missing_ok=True)

    def stop(self, timeout=10):
        """Ask it to end, insist after `timeout` seconds."""
        self.signal(signal.SIGTERM)
        if not self.wait_gone(timeout):
            self.signal(signal.SIGKILL)
        self.kill()

    def pause(self):
        """Stop the process where it stands: it keeps its connections and answers nothing."""
        self.signal(signal.SIGSTOP)

    def resume(self):
        self.signal(signal.SIGCONT)

    def tail(self, lines=15):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return ""

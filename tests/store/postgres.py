"""A PostgreSQL server of our own: in its own folder, on a free port, killed and restarted at will."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from cluster.ports import free_ports


def binaries():
    """The newest installed version's folder."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name))
    if not found:
        raise RuntimeError("PostgreSQL is not installed (run tools/setup)")
    return found[-1]


class Postgres:
    """with Postgres() as pg: pg.url, pg.rows("SELECT ..."), pg.kill(), pg.start()"""

    listen = "127.0.0.1"

    def __init__(self):
        self.bin = binaries()
        self.dir = Path(tempfile.mkdtemp(prefix="sluice-pg."))
        self.data = self.dir / "data"
        self.user = []
        if os.getuid() == 0:  # the server refuses to run as root
            shutil.chown(self.dir, "postgres", "postgres")
            self.user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
        (self.port,) = free_ports(1)
        self.process = None
        self._run("initdb", "-D", self.data, "-U", "sluice", "-A", "trust", "--no-sync")

    @property
    def url(self):
        return f"postgresql://sluice@127.0.0.1:{self.port}/postgres"

    def at(self, port):
        """The same through another port of this machine (a proxy)."""
        return f"postgresql://sluice@127.0.0.1:{port}/postgres"

    def _run(self, program, *args):
        command = [*self.user, self.bin / program, *args]
        done = subprocess.run(list(map(str, command)), cwd=self.dir, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stderr or done.stdout}")
        return done.stdout

    def start(self, timeout=120):
        command = [
            *self.user, self.bin / "postgres", "-D", self.data, "-p", self.port, "-k", self.dir,
            "-c", f"listen_addresses={self.listen}", "-c", "max_connections=30",
        ]  # fmt: skip
        end = time.monotonic() + timeout
        with open(self.dir / "server.log", "ab") as log:
            while True:
                # After a kill the children of the dead server may still be on their way out.
                if self.process is None or self.process.poll() is not None:
                    self.process = subprocess.Popen(list(map(str, command)), cwd=self.dir, stdout=log, stderr=log)
                if self.ready():
                    return self
                if time.monotonic() > end:
                    raise RuntimeError(f"PostgreSQL does not start: {(self.dir / 'server.log').read_text()[-2000:]}")
                time.sleep(0.05)

    def ready(self):
        command = [self.bin / "pg_isready", "-q", "-h", "127.0.0.1", "-p", self.port]
        return subprocess.run(list(map(str, command))).returncode == 0

    def kill(self):
        """kill -9, as the kernel does when memory runs out."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(120)
        shutil.rmtree(self.dir, ignore_errors=True)

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def rows(self, query):
        """Lists of strings."""
        command = [self.bin / "psql", "-X", "-A", "-t", "-F", "\x1f", "-d", self.url, "-c", query]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return [line.split("\x1f") for line in done.stdout.splitlines()]

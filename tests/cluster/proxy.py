"""A wire between a client and the API server that a test can cut, freeze and slow down.

TLS goes through untouched: the server's certificate names 127.0.0.1, whatever the port.
"""

import asyncio
import socket
import struct
import threading

import yaml

from .patience import PATIENCE_S


class Proxy:
    """Forwards TCP connections to the API server of a cluster.

        with Proxy(cluster) as wire:
            run_client(wire.kubeconfig("sluice"))
            wire.cut()              # every connection ends, with a reset
            wire.freeze()           # connections stay, nothing comes through; thaw() lets it flow
            wire.mute()             # what the client says arrives, no answer comes back; unmute() lets them flow
            wire.refuse()           # new connections are closed at once; accept() takes them again
            wire.delay = 0.2        # seconds added to each piece of data, both ways
    """

    def __init__(self, cluster):
        self.cluster = cluster
        self.port = None
        self.delay = 0.0
        self.opened = 0  # connections taken so far
        self.bytes = 0  # forwarded, both ways
        self._refusing = False
        self._open = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._started = threading.Event()
        self._files = []

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._flow, self._answers = asyncio.Event(), asyncio.Event()
        self._flow.set()
        self._answers.set()
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader, writer):
        if self._refusing:
            self._reset(writer)
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.cluster.ports["apiserver"])
        except OSError:
            self._reset(writer)  # no server: to the client the same as a refused connection
            return
        self.opened += 1
        pair = (writer, far_writer)
        self._open.add(pair)
        try:
            await asyncio.gather(self._copy(reader, far_writer, self._flow), self._copy(far_reader, writer, self._answers))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(pair)
            for w in pair:
                w.close()

    async def _copy(self, reader, writer, gate):
        while data := await reader.read(65536):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flow.wait()
            await gate.wait()
            self.bytes += len(data)
            writer.write(data)
            await writer.drain()
        writer.write_eof()

    @staticmethod
    def _reset(writer):
        sock = writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    def _call(self, function):
        """Run function() on the loop's thread and return its result."""
        done = threading.Event()
        result = []

        def run():
            result.append(function())
            done.set()

        self._loop.call_soon_threadsafe(run)
        if not done.wait(PATIENCE_S):
            raise TimeoutError("the proxy does not answer")
        return result[0]

    def start(self):
        self._thread.start()
        self._started.wait(PATIENCE_S)
        return self

    def stop(self):
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        for path in self._files:
            path.unlink(missing_ok=True)

    __enter__ = start

    def __exit__(self, *_):
        self.stop()

    def cut(self):
        """End all connections with a reset; returns how many there were."""

        def run():
            pairs = list(self._open)
            for pair in pairs:
                for w in pair:
                    self._reset(w)
            return len(pairs)

        return self._call(run)

    def freeze(self):
        self._call(self._flow.clear)

    def thaw(self):
        self._call(self._flow.set)

    def mute(self):
        self._call(self._answers.clear)

    def unmute(self):
        self._call(self._answers.set)

    def refuse(self):
        self._refusing = True

    def accept(self):
        self._refusing = False

    def kubeconfig(self, user="sluice"):
        """A copy of the user's kubeconfig that leads through the proxy; gone when the proxy stops."""
        conf = yaml.safe_load((self.cluster.folder / f"{user}.kubeconfig").read_text())
        conf["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        path = self.cluster.folder / f"{user}-{self.port}.kubeconfig"
        path.write_text(yaml.safe_dump(conf))
        path.chmod(0o600)
        self._files.append(path)
        return path

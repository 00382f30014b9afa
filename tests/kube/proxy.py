"""A TCP proxy in front of the API server that breaks connections on demand."""

import random
import socket
import threading
from pathlib import Path

import yaml


class Proxy:
    """Listens on a port of its own and forwards to `target`.  cut() breaks what is open at any byte."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = set()
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            try:
                b = socket.create_connection(self.target, timeout=5)
            except OSError:
                a.close()
                continue
            b.settimeout(None)
            pair = (a, b)
            with self.lock:
                self.pairs.add(pair)
            for x, y in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(x, y, pair), daemon=True).start()

    def _pump(self, x, y, pair):
        try:
            while data := x.recv(random.choice((700, 5000, 65536))):
                y.sendall(data)
        except OSError:
            pass
        self._close(pair)

    def _close(self, pair):
        with self.lock:
            self.pairs.discard(pair)
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self):
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            self._close(pair)
        self.cuts += len(pairs)
        return len(pairs)


def through(proxy, kubeconfig, where):
    """A copy of a kubeconfig that goes through the proxy."""
    conf = yaml.safe_load(Path(kubeconfig).read_text())
    for c in conf["clusters"]:
        c["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    path = Path(where) / "proxied.kubeconfig"
    path.write_text(yaml.safe_dump(conf))
    return path

"""Five kinds of hostile clients, all at once, in a process of their own: python -m rpc.attack PORT CONNECTIONS

They go on until CONNECTIONS were opened; then the program prints as JSON how often each of them struck.
"""

import json
import socket
import struct
import sys
import threading
import time
from types import SimpleNamespace

from rpc.test_wire import dial, frame, head


def half_open(d, held):
    """Send heads without bodies, as many as a connection takes."""
    s = dial(d)
    held.append(s)
    s.sendall(b"".join(frame(1, 4, 2 * i + 1, head()) for i in range(100)))
    if len(held) > 40:
        held.pop(0).close()


def crowd(d, held):
    """Open connections and send nothing."""
    held.append(socket.create_connection(("127.0.0.1", d.port), timeout=10))
    if len(held) > 900:
        held.pop(0).close()


def endless_headers(d, held):
    with dial(d) as s:
        s.sendall(frame(1, 0, 1, head()))
        for _ in range(10000):
            s.sendall(frame(9, 0, 1, b"\x00\x01a\x7f\x80\x01" + b"b" * 255))


def gigabytes(d, held):
    """Announce messages of a gigabyte each."""
    with dial(d) as s:
        for i in range(50):
            s.sendall(frame(1, 4, 2 * i + 1, head(b"/fluxion.FluxionService/Init")) +
                      frame(0, 0, 2 * i + 1, b"\x00" + struct.pack(">I", 1 << 30) + b"x" * 1000))
        time.sleep(0.1)


def never_read(d, held):
    """Never read answers and trailers."""
    s = dial(d)
    held.append(s)
    for i in range(20):
        s.sendall(frame(1, 4, 2 * i + 1, head(b"/service.ExternalPluginService/GetResources")) + frame(0, 1, 2 * i + 1, b"\x00" * 5))
    if len(held) > 20:
        held.pop(0).close()


KINDS = (half_open, crowd, endless_headers, gigabytes, never_read)


def strike(d, how, done, enough):
    held = []
    while not enough.is_set():
        try:
            how(d, held)
        except OSError:  # thrown out, as it should be
            pass
        done[how.__name__] += 1
        time.sleep(0.0005)
    for s in held:
        s.close()


def main():
    d, connections = SimpleNamespace(port=int(sys.argv[1])), int(sys.argv[2])
    done, enough = {how.__name__: 0 for how in KINDS}, threading.Event()
    threads = [threading.Thread(target=strike, args=(d, how, done, enough)) for how in KINDS]
    for t in threads:
        t.start()
    while done["crowd"] < connections or not all(done.values()):
        time.sleep(0.1)
    enough.set()
    for t in threads:
        t.join()
    print(json.dumps(done))


if __name__ == "__main__":
    main()

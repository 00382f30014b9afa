"""Hostile clients: nothing crashes, memory stays bounded, other clients are served."""

import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from rpc.alone import Alone, Client, jgf, jobspec
from rpc.test_wire import dial, frame, head


@pytest.fixture()
def alone():
    with Alone("--external-service", "--policy", "lonode", graph=jgf(nodes=200, cores=8)) as d:
        yield d


def rss_mb(d):
    return int(next(line for line in Path(f"/proc/{d.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def served(d, timeout=10):
    f = Client(d.channel(**{"grpc.use_local_subchannel_pool": 1}), "fluxion")
    f.Cancel(jobID=f.Match(jobspec=jobspec(), request="allocate", timeout=timeout, wait=True).jobid)


def test_ten_thousand_connections(alone):
    """More connections than the server takes: idle ones make room for new ones, and a real client gets in."""
    before, held = rss_mb(alone), []
    for i in range(10000):
        try:
            held.append(socket.create_connection(("127.0.0.1", alone.port), timeout=5))
        except OSError:
            pass
        if len(held) > 900:
            held.pop(0).close()
    served(alone)
    assert rss_mb(alone) - before < 200
    for s in held:
        s.close()


def test_half_open_streams(alone):
    """Heads without bodies on every stream of forty connections."""
    before, held = rss_mb(alone), []
    for _ in range(40):
        s = dial(alone)
        s.sendall(b"".join(frame(1, 4, 2 * i + 1, head()) for i in range(100)))
        held.append(s)
    served(alone)
    assert rss_mb(alone) - before < 200
    for s in held:
        s.close()
    served(alone)


def test_endless_headers(alone):
    s = dial(alone)
    s.sendall(frame(1, 0, 1, head()))
    with pytest.raises(OSError):  # the connection is closed in the middle of it
        for _ in range(10000):
            s.sendall(frame(9, 0, 1, b"\x00\x01a\x7f\x80\x01" + b"b" * 255))
            time.sleep(0)
    served(alone)


def test_messages_of_nothing(alone):
    """A hundred thousand empty messages of reflection, and not one answer read."""
    before = rss_mb(alone)
    s = dial(alone)
    s.settimeout(5)
    s.sendall(frame(1, 4, 1, head(b"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")))
    try:
        for _ in range(100):
            s.sendall(frame(0, 0, 1, b"\x00\x00\x00\x00\x00" * 1000))
    except OSError:
        pass
    served(alone)
    assert rss_mb(alone) - before < 200
    s.close()


def test_large_answers_that_nobody_reads(alone):
    before, held = rss_mb(alone), []
    for _ in range(20):
        s = dial(alone)
        for i in range(20):
            s.sendall(frame(1, 4, 2 * i + 1, head(b"/service.ExternalPluginService/GetResources")) + frame(0, 1, 2 * i + 1, b"\x00\x00\x00\x00\x00"))
        held.append(s)
    served(alone, 60)
    assert rss_mb(alone) - before < 600
    for s in held:
        s.close()
    served(alone)


def test_a_graph_announced_and_never_sent(alone):
    """Many streams announce three hundred megabytes and send a few bytes: the server holds only what has arrived."""
    before, s = rss_mb(alone), dial(alone)
    for i in range(100):
        s.sendall(frame(1, 4, 2 * i + 1, head(b"/fluxion.FluxionService/Init")) + frame(0, 0, 2 * i + 1, b"\x00" + struct.pack(">I", 300 << 20) + b"x" * 100))
    served(alone)
    assert rss_mb(alone) - before < 100
    s.close()


def test_callers_that_leave_give_back_what_they_matched(alone):
    """A client cancels in the middle of a match, many times: the whole machine is free at the end."""
    f = Client(alone.channel(), "fluxion")

    def leave():
        for _ in range(50):
            with dial(alone) as s:
                text = jobspec(3).encode()
                body = b"\x0a" + bytes([len(text) & 0x7F | 0x80, len(text) >> 7]) + text + b"\x12\x08allocate"
                s.sendall(frame(1, 4, 1, head()) + frame(0, 1, 1, b"\x00" + struct.pack(">I", len(body)) + body) + frame(3, 0, 1, b"\x00\x00\x00\x08"))

    threads = [threading.Thread(target=leave) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    time.sleep(0.5)
    whole = f.Match(jobspec=jobspec(1600), request="allocate", timeout=30)
    assert whole.jobid > 0

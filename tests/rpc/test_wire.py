"""gRPC itself: deadlines, encodings, ceilings, and clients that misbehave."""

import contextlib
import socket
import struct
import threading
import time
from pathlib import Path
from urllib.parse import unquote

import grpc
import hpack
import pytest

from rpc.alone import Alone, Client, jgf, jobspec


@pytest.fixture(scope="module")
def alone():
    with Alone("--policy", "lonode", graph=jgf(nodes=64)) as d:
        yield d


def raw(alone, method="/fluxion.FluxionService/Match"):
    return alone.channel().unary_unary(method)


def code(call, *args, **kw):
    with pytest.raises(grpc.RpcError) as e:
        call(*args, **kw)
    return e.value.code(), e.value.details()


def test_gzip_in_and_out(alone):
    f = Client(alone.channel(), "fluxion")
    a = f.Match(jobspec=jobspec(8), request="allocate", compression=grpc.Compression.Gzip)
    assert a.jobid > 0
    f.Cancel(jobID=a.jobid, compression=grpc.Compression.Gzip)


def test_another_encoding_is_refused_with_those_that_are_known(alone):
    got = code(Client(alone.channel(), "fluxion").Match, jobspec=jobspec(500), request="allocate", compression=grpc.Compression.Deflate)
    assert got == (grpc.StatusCode.UNIMPLEMENTED, 'the encoding "deflate" is not supported; use identity or gzip')


def test_an_unknown_method(alone):
    assert code(raw(alone, "/fluxion.FluxionService/Fly"), b"", timeout=5) == (
        grpc.StatusCode.UNIMPLEMENTED, "there is no method /fluxion.FluxionService/Fly")


@pytest.mark.parametrize("message, place", [
    (b"\x0a\x7f", "MatchRequest: the message is cut off or is not protobuf"),
    (b"\x12\x05abcd\xff", "MatchRequest.request: the string is not UTF-8"),
    (b"\x0a\x01a\x10\x07", "MatchRequest.request: the wire type is not that of the field"),
])
def test_broken_protobuf_names_the_place(alone, message, place):
    assert code(raw(alone), message, timeout=5) == (grpc.StatusCode.INVALID_ARGUMENT, place)


def test_broken_protobuf_in_a_pod(alone):
    assert code(raw(alone, "/fluxcli.FluxcliService/Match"), b"\x0a\x04\x1a\x02ab", timeout=5) == (
        grpc.StatusCode.INVALID_ARGUMENT, "MatchRequest.ps.cpu: the wire type is not that of the field")


def test_a_message_above_the_ceiling_of_its_method(alone):
    got, why = code(Client(alone.channel(), "fluxion").Match, jobspec="#" * (5 << 20), request="allocate")
    assert got == grpc.StatusCode.RESOURCE_EXHAUSTED and why == "the message is larger than the 4194304 bytes /fluxion.FluxionService/Match takes"


def test_a_packed_message_above_the_ceiling_once_unpacked(alone):
    got, why = code(Client(alone.channel(), "fluxion").Match, jobspec="#" * (5 << 20), request="allocate", compression=grpc.Compression.Gzip)
    assert got == grpc.StatusCode.RESOURCE_EXHAUSTED and why == "the message is larger than the 4194304 bytes /fluxion.FluxionService/Match takes"


def test_a_dial_before_the_server_is_up_waits_for_it():
    d = Alone(graph=jgf())
    ready = grpc.channel_ready_future(d.channel())
    time.sleep(0.3)
    with d:
        ready.result(timeout=20)


def test_a_new_connection_per_call(alone):
    for _ in range(50):
        with alone.channel(**{"grpc.use_local_subchannel_pool": 1}) as ch:
            f = Client(ch, "fluxion")
            f.Cancel(jobID=f.Match(jobspec=jobspec(), request="allocate", timeout=1).jobid)


def test_work_past_its_deadline_leaves_nothing_behind():
    """While the thread of the graph is busy with a large Grow, and then an Init, matches come that cannot wait."""
    with Alone(graph=jgf(nodes=1, cores=1)) as d:
        f, big = Client(d.channel(), "fluxion"), jgf(nodes=1500, cores=32)

        def change():
            f.Grow(jgf=jgf(nodes=1499, cores=32, first=1), timeout=60)
            f.Init(policy="lonode", jgf=big, timeout=60)

        init = threading.Thread(target=change)
        init.start()
        late, known = 0, []
        while init.is_alive():
            try:
                known.append(f.Match(jobspec=jobspec(), request="allocate", timeout=0.02).jobid)
            except grpc.RpcError as e:
                late += e.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert late
        for job in known:
            f.Cancel(jobID=job)
        assert f.Match(jobspec=jobspec(1500 * 32), request="allocate", timeout=60).jobid > 0


def memory(d, what):
    return next(int(line.split()[1]) * 1024 for line in open(f"/proc/{d.process.pid}/status") if line.startswith(what))


@pytest.mark.parametrize("message, place", [
    (b"\x12\x7f{}", "InitRequest: the message is cut off or is not protobuf"),
    (b"\x12\x02{}\x10\x07", "InitRequest.jgf: the wire type is not that of the field"),
    (b"\x12\x02{}\x0a\x01\xff", "InitRequest.policy: the string is not UTF-8"),
    (b"\x12\x02{}\x03", "InitRequest: the message is cut off or is not protobuf"),
])
def test_a_broken_message_around_a_graph_names_the_place(alone, message, place):
    assert code(raw(alone, "/fluxion.FluxionService/Init"), message, timeout=5) == (grpc.StatusCode.INVALID_ARGUMENT, place)


@pytest.mark.parametrize("change, words", [
    (lambda t: t[:-1], "fetch_jgf: json_loads returned an error: unexpected end of data: <string>@1:{n}."),
    (lambda t: t.replace('"edges": [', '"edges": [,'), "fetch_jgf: json_loads returned an error: unexpected character, expected a valid JSON value: <string>@1:{edges}."),
    (lambda t: t.replace('"source"', '"from"'), "unpack_edge: encountered a malformed edge."),
    (lambda t: t.replace('"target": "9"', '"target": "none"'), "unpack_edge: source and/or target vertex not found8 -> none."),
    (lambda t: t.replace('"id": "9"', '"id": "8"'), "add_vtx: found duplicate JGF node id for 8."),
    (lambda t: "", "fetch_jgf: json_loads returned an error: empty text: <string>@1:1."),
])
def test_a_graph_is_refused_in_the_same_words_however_it_comes(change, words):
    """At once on the command line, where it is read whole, and by Init, where it is read as it arrives."""
    good = jgf(nodes=600, cores=6)
    text = change(good)
    assert len(good) > 2 << 19 and text != good
    words = words.format(n=len(text) + 1, edges=good.find('"edges": [') + 11)
    with Alone(graph=jgf()) as d:
        got = code(Client(d.channel(), "fluxion").Init, jgf=text)
        assert got == (grpc.StatusCode.UNKNOWN, "issue initializing resource api client -1: " + words)
    whole = Alone(graph=text)
    assert whole.start(wait=False).process.wait(60) != 0
    assert words in whole.log.read_text().replace('\\"', '"')


def test_matches_are_answered_while_a_graph_arrives(alone):
    s = dial(alone)
    s.sendall(frame(1, 4, 1, head(b"/fluxion.FluxionService/Init")) + frame(0, 0, 1, b"\x00" + struct.pack(">I", 300 << 20) + b"\x12"))
    f = Client(alone.channel(), "fluxion")
    job = f.Match(jobspec=jobspec(1), request="allocate", timeout=5).jobid
    f.Cancel(jobID=job)
    s.close()


def test_a_graph_of_fifty_megabytes():
    with Alone() as d:
        big = jgf(nodes=4000, cores=32)
        assert len(big) > 30e6
        f = Client(d.channel(), "fluxion")
        before = memory(d, "VmHWM")
        assert f.Init(policy="lonode", jgf=big, timeout=120).status == 0
        assert f.Match(jobspec=jobspec(4, 8), request="allocate", timeout=1).jobid == 1
        # a text that is held is one time its length, and the graph comes on top; a sanitizer keeps what was freed
        assert memory(d, "VmHWM") - before < len(big) or b"__asan_init" in Path(f"/proc/{d.process.pid}/exe").read_bytes()
        assert f.Init(policy="lonode", jgf=big, timeout=120, compression=grpc.Compression.Gzip).status == 0
        assert f.Match(jobspec=jobspec(4, 8), request="allocate", timeout=1).jobid == 1


# ---- without a library: what no good client does ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def head(path=b"/fluxion.FluxionService/Match", *more):
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x"), (b"te", b"trailers"),
              (b"content-type", b"application/grpc"), *more]
    return b"".join(literal(n, v) for n, v in fields)


def dial(alone):
    s = socket.create_connection(("127.0.0.1", alone.port), timeout=10)
    s.sendall(PREFACE + frame(4, 0, 0))
    return s


def status(s, limit=10):
    """The code and the sentence of the next call that ends on this connection."""
    got, decoder, found, end = b"", hpack.Decoder(), {}, time.monotonic() + limit
    while "grpc-status" not in found:
        assert time.monotonic() < end
        part = s.recv(65536)
        assert part, "closed without a status"
        got += part
        while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
            n, kind = int.from_bytes(got[:3], "big"), got[3]
            if kind == 1:
                found.update(decoder.decode(got[9:9 + n]))
            got = got[9 + n:]
    return int(found["grpc-status"]), unquote(found["grpc-message"])


def once(alone, *frames):
    with dial(alone) as s:
        s.sendall(b"".join(frames))
        return status(s)


def test_a_message_of_a_gigabyte_announced_is_refused_before_it_comes(alone):
    assert once(alone, frame(1, 4, 1, head()), frame(0, 0, 1, b"\x00\x40\x00\x00\x00")) == (
        8, "the message is larger than the 4194304 bytes /fluxion.FluxionService/Match takes")


def test_a_flag_that_does_not_exist(alone):
    assert once(alone, frame(1, 4, 1, head()), frame(0, 1, 1, b"\x07\x00\x00\x00\x00")) == (
        3, "the message is not framed as gRPC frames it, or not in the encoding announced")


def test_no_message(alone):
    assert once(alone, frame(1, 5, 1, head())) == (3, "the call has no message")


def test_two_messages(alone):
    assert once(alone, frame(1, 4, 1, head()), frame(0, 1, 1, b"\x00\x00\x00\x00\x00" * 2)) == (3, "/fluxion.FluxionService/Match takes one message")


def test_a_message_cut_off(alone):
    assert once(alone, frame(1, 4, 1, head()), frame(0, 1, 1, b"\x00\x00\x00\x00\x09abc")) == (3, "the message is cut off")


def test_a_timeout_that_is_no_time(alone):
    assert once(alone, frame(1, 4, 1, head(b"/fluxion.FluxionService/Match", (b"grpc-timeout", b"soon")))) == (3, 'grpc-timeout "soon" is not a time')


def goaway(s):
    """The error code with which the server ends the connection."""
    got = b""
    while True:
        part = s.recv(65536)
        assert part, "closed without a word"
        got += part
        while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
            n, kind = int.from_bytes(got[:3], "big"), got[3]
            if kind == 7:
                return int.from_bytes(got[13:17], "big")
            got = got[9 + n:]


EMPTY = b"\x00\x00\x00\x00\x00"


@pytest.mark.parametrize("frames, error", [
    ((frame(1, 4, 5, head()), frame(1, 4, 3, head())), 1),  # smaller than the one before it
    ((frame(1, 4, 1, head()), frame(1, 4, 9, head()), frame(1, 4, 13, head()), frame(1, 5, 7, head())), 1),
    ((frame(1, 4, 1, head()), frame(3, 0, 1, b"\0\0\0\x08"), frame(0, 1, 1, EMPTY)), 5),  # reset, then DATA or HEADERS
    ((frame(1, 4, 1, head()), frame(3, 0, 1, b"\0\0\0\x08"), frame(1, 5, 1, head())), 5),
    ((frame(1, 4, 1, head()), frame(0, 1, 1, EMPTY), frame(0, 1, 1, EMPTY)), 5),  # ended, then DATA or HEADERS
    ((frame(1, 4, 1, head()), frame(0, 1, 1, EMPTY), frame(1, 5, 1, head())), 5),
])
@pytest.mark.parametrize("pieces", [1 << 20, 7])
def test_streams_that_were_passed_over_or_ended(alone, frames, error, pieces):
    everything = b"".join(frames)
    with dial(alone) as s:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the head of the last frame is enough for the server
            for i in range(0, len(everything), pieces):
                s.sendall(everything[i:i + pieces])
        assert goaway(s) == error


def test_http_1_is_told_what_this_port_speaks(alone):
    with socket.create_connection(("127.0.0.1", alone.port), timeout=10) as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"this port speaks gRPC" in b"".join(iter(lambda: s.recv(4096), b""))

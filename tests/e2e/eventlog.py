"""The rows of an event log, read without the program that wrote them (src/queue/log_internal.h, codec.c)."""

import struct

BEGIN, KIND, LEVEL, SET, CHANGE, DROP, EVENT, PASS, STOP = range(1, 10)
START = 0  # the first kind of decision


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def u(self):
        value = shift = 0
        while True:
            c = self.data[self.at]
            self.at += 1
            value |= (c & 127) << shift
            shift += 7
            if not c & 128:
                return value

    def i(self):
        value = self.u()
        return value >> 1 ^ -(value & 1)

    def run(self, n):
        self.at += n
        return self.data[self.at - n : self.at]

    def text(self):
        n = self.u()
        return self.run(n - 1).decode() if n else None

    def more(self):
        return self.at < len(self.data)


def decisions(data, base):
    """(kind, job, parts as (node, role, slots), offset of the last byte) of each."""
    r = Reader(data)
    out = []
    for _ in range(r.u()):
        kind, job = r.u(), r.u()
        r.i(), r.i(), r.i(), r.u(), r.u(), r.u(), r.u(), r.i()
        r.text()
        parts = [(r.u(), r.u(), r.u()) for _ in range(r.u())]
        out.append((kind, job, parts, base + r.at - 1))
    assert not r.more()
    return out


def frames(data):
    """(frame, what is in it) for each frame of a row."""
    r = Reader(data)
    while r.more():
        what = r.u()
        if what == BEGIN:
            yield what, (r.u(), r.i(), r.u(), r.u())
        elif what in (KIND, LEVEL):
            yield what, r.text()
        elif what == SET:
            id, n = r.u(), r.u()
            yield what, (id, struct.unpack(f"<{n}Q", r.run(8 * n)))
        elif what == CHANGE:
            yield what, (r.u(), r.u(), r.u())
        elif what == DROP:
            yield what, r.u()
        elif what == EVENT:
            event = r.run(r.u())
            n = r.u()
            base = r.at
            e = Reader(event)
            yield what, ((e.u(), e.i(), e.u(), e.u()), decisions(r.run(n), base))
        elif what == PASS:
            now = r.i()
            n = r.u()
            base = r.at
            yield what, (now, decisions(r.run(n), base))
        else:
            assert what == STOP and not r.more()
            yield what, None

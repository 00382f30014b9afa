"""The matcher in this process: libsluice through cffi, declared by its own header."""

from __future__ import annotations

import enum
import json
import os
from dataclasses import dataclass
from importlib import resources
from typing import Any

from cffi import FFI

from .client import Text, read_text


class SluiceError(Exception):
    """An error of libsluice: its message, and its code as `errno`."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text or os.strerror(-code))
        self.errno = -code


class Answer(enum.IntEnum):
    NOW = 0
    LATER = 1
    BUSY = 2
    NEVER = 3


@dataclass(frozen=True)
class Job:
    """The result of a match.  `allocation` is a text in the graph's match format; None if the job does not fit."""

    answer: Answer
    id: int | None
    start: int
    end: int
    allocation: str | None

    @property
    def reserved(self) -> bool:
        return self.answer is Answer.LATER


def _load() -> tuple[FFI, Any]:
    ffi = FFI()
    header = resources.files("sluice").joinpath("sluice.h").read_text()
    lines = [line for line in header.splitlines() if not line.startswith("#")]
    declarations = "\n".join(lines).split('extern "C" {', 1)[1].rsplit("}", 1)[0]
    ffi.cdef(declarations)
    return ffi, ffi.dlopen(os.environ.get("SLUICE_LIBRARY", "libsluice.so.0"))


_ffi, _lib = None, None


def _sluice() -> tuple[Any, Any]:
    """The library, loaded at first use: the gRPC clients do not need it."""
    global _ffi, _lib
    if _lib is None:
        _ffi, _lib = _load()
    return _ffi, _lib


class Graph:
    """A graph of resources, and the jobs that are allocated on it.

    >>> g = Graph("cluster.json", policy="lonode")
    >>> job = g.match(open("job.yaml").read())
    >>> g.cancel(job.id)
    """

    def __init__(self, graph: Text, policy: str = "first", load_format: str = "jgf", match_format: str = "jgf") -> None:
        """Load `graph`, a text or a file in `load_format` (jgf, grug, rv1exec, hwloc)."""
        self._ffi, self._lib = _sluice()
        text = read_text(graph).encode()
        options = json.dumps({"matcher_policy": policy, "load_format": load_format, "match_format": match_format}).encode()
        out, err = self._ffi.new("struct sluice_graph **"), self._ffi.new("struct sluice_error *")
        self._check(self._lib.sluice_graph_new(text, len(text), options, out, err), err)
        self._g = self._ffi.gc(out[0], self._lib.sluice_graph_free)

    def _check(self, code: int, err: Any = None) -> int:
        if code < 0:
            raise SluiceError(code, self._ffi.string(err.text).decode() if err else "")
        return code

    def match(self, jobspec: Text, reserve: bool = False, now: int = 0) -> Job:
        """Allocate the job now or, with `reserve`, at the earliest time at which it fits."""
        text = read_text(jobspec).encode()
        m, err = self._ffi.new("struct sluice_match *"), self._ffi.new("struct sluice_error *")
        try:
            answer = Answer(self._check(self._lib.sluice_graph_allocate(self._g, reserve, now, text, len(text), m, err), err))
            if answer in (Answer.BUSY, Answer.NEVER):
                return Job(answer, None, 0, 0, None)
            return Job(answer, m.job, m.start_s, m.end_s, self._ffi.string(m.text).decode() if m.text else "")
        finally:
            self._lib.sluice_match_done(m)

    def satisfiable(self, jobspec: Text) -> bool:
        """Whether the job could run on the empty graph."""
        text, err = read_text(jobspec).encode(), self._ffi.new("struct sluice_error *")
        return bool(self._check(self._lib.sluice_graph_satisfiable(self._g, text, len(text), err), err))

    def cancel(self, job: int) -> None:
        self._check(self._lib.sluice_graph_cancel(self._g, job))

    def grow(self, jgf: Text) -> None:
        text, err = read_text(jgf).encode(), self._ffi.new("struct sluice_error *")
        self._check(self._lib.sluice_graph_add_subgraph(self._g, text, len(text), err), err)

    def shrink(self, path: str) -> None:
        err = self._ffi.new("struct sluice_error *")
        self._check(self._lib.sluice_graph_remove_subgraph(self._g, path.encode(), err), err)

    def find(self, criteria: str, now: int = 0) -> str | None:
        """Return the resources that meet the criteria ("status=up and sched-now=free"), or None if there are none."""
        out, err = self._ffi.new("char **"), self._ffi.new("struct sluice_error *")
        self._check(self._lib.sluice_graph_find(self._g, criteria.encode(), self._ffi.NULL, now, out, err), err)
        if not out[0]:
            return None
        try:
            text: str = self._ffi.string(out[0]).decode()
            return text
        finally:
            self._lib.sluice_free(out[0])

    def clone(self) -> Graph:
        """Return a copy with all jobs, which can be changed independently."""
        copy = object.__new__(Graph)
        copy._ffi, copy._lib = self._ffi, self._lib
        g = self._lib.sluice_graph_clone(self._g)
        if not g:
            raise MemoryError
        copy._g = self._ffi.gc(g, self._lib.sluice_graph_free)
        return copy

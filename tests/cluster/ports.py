"""Ports for the servers of tests.

A port is chosen here and bound later, by a program that this process starts, maybe more than once.  In between no
other process may get the port, so every process of the suite locks one byte of a common file per port and keeps the
lock until it ends.  The kernel gives none of these ports to outgoing connections: they lie below its range.
"""

import fcntl
import os
import random
import socket
import tempfile
import threading
from pathlib import Path

FIRST, LAST = 20000, 31999

_guard = threading.Lock()
_taken = set()  # a process does not exclude itself by its locks
_file = None


def _locks():
    """The common file, for tests of any account."""
    path = Path(tempfile.gettempdir()) / "sluice-test-ports"
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.fchmod(fd, 0o666)
        return fd


def _lock(port):
    """Lock the port until this process ends; False if another process has it."""
    global _file
    if port in _taken:
        return False
    if _file is None:
        _file = _locks()
    try:
        fcntl.lockf(_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except (BlockingIOError, PermissionError):
        return False
    _taken.add(port)
    return True


def _unused(port):
    """Whether no program listens on the port, at any address of the machine, or did a moment ago."""
    with socket.socket() as s:
        try:
            s.bind(("", port))
        except OSError:
            return False
    return True


def free_ports(count):
    """Ports on which no program listens and that no other test gets while this process lives."""
    ports = []
    with _guard:
        for port in random.sample(range(FIRST, LAST + 1), LAST + 1 - FIRST):
            if len(ports) == count:
                break
            if _lock(port) and _unused(port):
                ports.append(port)
    assert len(ports) == count, f"{count} ports wanted; all from {FIRST} to {LAST} are in use but {len(ports)}"
    return ports

"""Ports for the servers of tests."""

import random
import socket


def free_ports(count):
    """Ports that nobody listens on, from below the range the system gives to outgoing connections."""
    held, ports = [], []
    try:
        while len(ports) < count:
            s = socket.socket()
            held.append(s)
            port = random.randrange(20000, 32000)
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(port)
    finally:
        for s in held:
            s.close()
    return ports

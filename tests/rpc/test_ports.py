"""Ports of tests: several processes that choose at the same time never have one in common."""

import subprocess
import sys

from cluster.ports import FIRST, free_ports

CHOOSE = "from cluster.ports import free_ports; print(*free_ports(700), *free_ports(300), flush=True); input()"


def test_no_port_is_given_twice():
    choosers = [subprocess.Popen([sys.executable, "-c", CHOOSE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    lists = [c.stdout.readline().split() for c in choosers] + [free_ports(10)]
    for c in choosers:
        c.communicate("\n", timeout=60)
        assert c.returncode == 0
    every = [int(port) for ports in lists for port in ports]
    assert len(every) == 4010 and len(set(every)) == 4010


def test_the_kernel_gives_them_to_no_connection():
    first, last = map(int, open("/proc/sys/net/ipv4/ip_local_port_range").read().split())
    assert all(not first <= port <= last for port in free_ports(50)), f"outgoing connections have {first} to {last}; tests begin at {FIRST}"

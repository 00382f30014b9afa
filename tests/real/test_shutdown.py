"""A node that is shut down in good order, and one that does not come up."""

import os
import re
import time

import pytest

from cluster.patience import until
from cluster.real import RealCluster

from .test_gangs import condition, job, phases, pods, submit, terminated

GRACE_S = 4
#: Takes its time when it is told to end, and leaves a note on its node.
SLOW_END = f"trap 'sleep {GRACE_S}; echo over >/grace/$HOSTNAME; exit 7' TERM; sleep 600 & wait"


def slow_job(name, cpu, backoff):
    """Three pods, each on a node of its own."""
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"job": name}}}]}}  # fmt: skip
    return job(name, 3, SLOW_END, cpu=cpu, backoff=backoff, container={"volumeMounts": [{"name": "grace", "mountPath": "/grace"}]}, affinity=apart,
               volumes=[{"name": "grace", "hostPath": {"path": "/var/lib/grace", "type": "DirectoryOrCreate"}}], terminationGracePeriodSeconds=12)


def on(found, node):
    return next((p for p in found if p["spec"].get("nodeName") == node.name), None)


def test_a_node_that_is_shut_down(real, sluiced, space):
    """The pods of the node end with their grace period. The gang that may not be mended ends, and its room is used;
    the gang whose Job makes another pod continues elsewhere; no pod is placed on the node until it is up again."""
    for name, cpu, backoff in (("ends", "1100m", 0), ("goes-on", "700m", 6)):
        submit(real, space, slow_job(name, cpu, backoff))
        until(lambda name=name: phases(real, space, name) == ["Running"] * 3)
    first, second = pods(real, space, "ends"), pods(real, space, "goes-on")
    home = sluiced.pod()["spec"]["nodeName"]  # the daemon's volume is there and nowhere else
    lost = next(n for n in real.nodes if n.name != home and on(first, n) and on(second, n))
    begun = time.monotonic()
    lost.shut_down()
    took = time.monotonic() - begun
    try:
        assert took >= GRACE_S, f"off after {took:.1f} s"
        notes = {f.name for f in (lost.folder / "lib" / "grace").iterdir()}
        assert {on(found, lost)["spec"]["hostname"] for found in (first, second)} <= notes, "each pod of the node came to the end of its grace"
        for found in (first, second):
            now = real.admin.get("pods", on(found, lost)["metadata"]["name"], space)
            assert (now["status"]["phase"], now["status"]["reason"], terminated(now)["exitCode"]) == ("Failed", "Terminated", 7), now["status"]
        # The first gang: its Job has failed, and the daemon says that it is over.
        until(lambda: condition(real, space, "ends", "Failed"), message="the Job of the first gang has failed")
        until(lambda: "ends" not in sluiced.jobs(), message="Sluice knows that the gang is over")
        assert re.search(r"gang ended.*\bends\b.*failed", sluiced.log()), sluiced.log()
        # The second: another pod in the place of the lost one, on a node that is up.
        until(lambda: phases(real, space, "goes-on") == ["Failed", "Running", "Running", "Running"], message="the second gang is whole again")
        assert lost.name not in {p["spec"]["nodeName"] for p in pods(real, space, "goes-on") if p["status"]["phase"] == "Running"}
        submit(real, space, job("next", 3, "true", cpu="1100m"))
        until(lambda: condition(real, space, "next", "Complete"), message="a gang on the room of the first")
        assert not on(pods(real, space, "next"), lost)
        submit(real, space, job("waits", 4, "true", cpu="1100m"))
        # A node that is not ready is no part of the machine, so the gang is told that it cannot run as things are.
        told = until(lambda: (j := sluiced.jobs().get("waits", {})).get("state") in ("waiting", "never") and j, message="a gang that needs all nodes is queued")
        assert told["state"] == "never" and not any(p["spec"].get("nodeName") for p in pods(real, space, "waits")), told
    finally:
        lost.up()
    until(lambda: condition(real, space, "waits", "Complete"), message="and starts when the node is up")
    assert on(pods(real, space, "waits"), lost)


def test_a_node_that_does_not_come_up_says_why(tmp_path):
    """The error names what the first process of the node did last."""
    missing = tmp_path / "nosuch.tar"
    with pytest.raises(RuntimeError, match=r"(?s)node real1 ended before its kubelet: exit status 1\n.*imports .*nosuch\.tar.*containerd\.log: "):
        RealCluster(f"broken-{os.getpid()}", real=1, images=[missing]).up()

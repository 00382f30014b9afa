"""Several replicas: one decides, the others stand by and take over; a deposed one writes nothing."""

import random
import signal
import socket
import ssl
import time

import pytest
from store.postgres import Postgres

from cluster import Proxy, work
from cluster.audit import Audit
from cluster.ports import free_ports
from cluster.gangs import GangWatch

from .conftest import until
from .daemon import Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 8, "cpu": 4}]}
LEASE_S = 3
ELECT = {"leader": {"elect": True, "lease": f"{LEASE_S}s"}}
SLUICE = "system:serviceaccount:sluice-system:sluice"


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as pg:
        yield pg


@pytest.fixture
def team(module_cluster, postgres, tmp_path):
    """team(3): that many replicas on one store; replicas that are dead at the end of the test are not stopped."""
    replicas = []

    def start(count, config=None, **more):
        for _ in range(count):
            folder = tmp_path / str(len(replicas))
            folder.mkdir()
            d = Sluiced(module_cluster, {**ELECT, **(config or {})}, store=postgres.url, folder=folder, **more)
            replicas.append(d)
            d.start()
        return replicas

    yield start
    for d in replicas:
        if d.process.poll() is None:
            d.process.send_signal(signal.SIGCONT)
            d.kill()


def leader(replicas, timeout=20):
    """The replica that leads, once exactly one says that it does."""

    def find():
        found = []
        for d in replicas:
            try:
                if d.process.poll() is None and d.metrics()["sluice_leader"] == 1:
                    found.append(d)
            except OSError:
                pass
        return found[0] if len(found) == 1 else None

    return until(find, timeout, "one leader")


def submit(cluster, space, name, size, cpu=4, **more):
    for p in work.gang(name, size, cpu=cpu, namespace=space, scheduler="sluice", **more):
        cluster.admin.create(p)
    return [f"{name}-{i}" for i in range(size)]


def test_leaders_killed(module_cluster, space, team):
    """Three replicas, the leader killed again and again while gangs come."""
    rng = random.Random(5)
    replicas = team(3)
    with GangWatch(module_cluster.admin, space) as watch:
        for g in range(9):
            submit(module_cluster, space, f"g{g}", rng.choice([2, 4, 8]), run=1)
            if g % 4 == 3:
                dead = leader(replicas)
                dead.kill()
                dead.start()
        watch.wait(lambda w: len(w.finished()) == 9, 90)
        assert not watch.half_started()
    assert not work.overbooked(module_cluster.admin)
    assert not Audit(module_cluster.audit_log).bound_twice(space)


def test_frozen_leader_writes_nothing_more(module_cluster, space, team):
    """The leader is stopped (SIGSTOP) in the middle of placing, for longer than its lease; when it continues,
    another replica has done its work."""
    # Few requests a second: most of its bindings are still waiting with it when it is stopped.
    replicas = team(2, {"kube": {"qps": 4, "burst": 8}})
    first = leader(replicas)
    second = next(d for d in replicas if d is not first)
    names = submit(module_cluster, space, "big", 16, cpu=2, run=600)
    audit = Audit(module_cluster.audit_log)
    until(lambda: len([b for b in audit.bindings(space) if b.ok]) >= 1)
    first.process.send_signal(signal.SIGSTOP)
    until(lambda: second.metrics()["sluice_leader"] == 1, LEASE_S + 10)
    work.wait_phase(module_cluster.admin, names, "Running", space, timeout=60)
    before = len(audit.bindings(space))
    first.process.send_signal(signal.SIGCONT)
    assert first.process.wait(120) == 1  # it starts over as a standby, with a mirror that is right
    assert "lost leadership: the lease" in first.log.read_text()
    time.sleep(1)
    assert len(audit.bindings(space)) == before  # not even one that is refused
    assert not audit.bound_twice(space)
    assert not work.overbooked(module_cluster.admin)


def test_cut_off_leader(module_cluster, space, team):
    """The leader loses its connection to the API server: it stops by itself before the next leader begins."""
    with Proxy(module_cluster) as wire:
        (far,) = team(1, kubeconfig=wire.kubeconfig("sluice"))
        assert leader([far]) is far
        near = team(1)[1]
        wire.freeze()
        submit(module_cluster, space, "later", 4, run=1)
        until(lambda: near.metrics()["sluice_leader"] == 1, LEASE_S + 15)
        assert far.process.wait(120) == 1
        wire.thaw()
        work.wait_phase(module_cluster.admin, [f"later-{i}" for i in range(4)], "Succeeded", space)
    assert not Audit(module_cluster.audit_log).bound_twice(space)


def test_order_and_promises_cross_over(module_cluster, space, team):
    replicas = team(2, {"queues": [{"name": "default", "objective": "order"}]})  # the first in line has a promise
    first = leader(replicas)
    second = next(d for d in replicas if d is not first)
    hour = {"sluice.sh/duration": "1h"}
    submit(module_cluster, space, "all", 8, run=600, annotations=hour)
    until(lambda: first.jobs(space).get("all", {}).get("bound") == 8)
    for name in ("zulu", "mike", "alpha"):
        submit(module_cluster, space, name, 8, run=1, annotations=hour)

    def seen(d):
        jobs = d.jobs(space)
        return [(n, jobs[n]["firstSeen"]) for n in sorted(jobs, key=lambda n: jobs[n]["position"]) if n != "all"]

    until(lambda: [n for n, _ in seen(first)] == ["zulu", "mike", "alpha"] and first.jobs(space)["zulu"].get("promised"))
    status, answer = second.request("POST", f"/v1/jobs/{space}/mike/cancel")
    holder = module_cluster.admin.get("leases", "sluice", "sluice-system")["spec"]["holderIdentity"]
    assert status == 503 and f"ask the leader: {holder}" in answer  # it could not keep it
    before, promise = seen(first), first.jobs(space)["zulu"]["estimate"]
    first.kill()
    until(lambda: second.metrics()["sluice_leader"] == 1, LEASE_S + 10)
    until(lambda: seen(second) == before)
    assert until(lambda: second.jobs(space)["zulu"].get("estimate")) <= promise


def test_leader_that_stops_hands_over(module_cluster, space, team, postgres):
    """A leader that is stopped gives up the lease, so no replica waits for its end. Then the Lease is deleted while
    no replica runs, and counts its transitions from zero again; the store does not."""
    patient = {"leader": {"elect": True, "lease": "60s"}}
    replicas = team(2, patient)
    first = leader(replicas)
    second = next(d for d in replicas if d is not first)
    begun = time.monotonic()
    assert first.stop() == 0
    until(lambda: second.metrics()["sluice_leader"] == 1, 30)
    assert time.monotonic() - begun < 40  # far from its end
    submit(module_cluster, space, "handed", 4, run=1)
    work.wait_phase(module_cluster.admin, [f"handed-{i}" for i in range(4)], "Succeeded", space)
    assert "lost leadership: the lease" not in first.log.read_text()

    term = int(postgres.rows("SELECT term FROM meta")[0][0])
    second.kill()
    module_cluster.admin.delete("leases", "sluice", "sluice-system")
    third = team(1, patient)[-1]
    assert leader([third]) is third
    submit(module_cluster, space, "anew", 4, run=1)
    work.wait_phase(module_cluster.admin, [f"anew-{i}" for i in range(4)], "Succeeded", space)
    assert module_cluster.admin.get("leases", "sluice", "sluice-system")["spec"]["leaseTransitions"] < term
    assert int(postgres.rows("SELECT term FROM meta")[0][0]) > term
    third.stop()


def test_webhook_of_every_replica(module_cluster, space, team):
    """Every replica, leading or not, answers with a certificate of the same authority."""
    ports = free_ports(2)
    for port in ports:
        replicas = team(1, {"webhook": {"enabled": True, "listen": f"127.0.0.1:{port}", "names": ["localhost"]}})
    leader(replicas)
    secret = until(lambda: next((s for s in module_cluster.admin.list("secrets", "sluice-system")
                                 if s["metadata"]["name"] == "sluice-webhook"), None))  # fmt: skip
    import base64

    authority = base64.b64decode(secret["data"]["ca.crt"]).decode()
    context = ssl.create_default_context(cadata=authority)

    def answers(port):
        with socket.create_connection(("localhost", port), timeout=60) as raw:
            with context.wrap_socket(raw, server_hostname="localhost") as tls:
                tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                return tls.recv(12).startswith(b"HTTP/1.1 ")

    for port in ports:
        until(lambda port=port: answers(port), 10)


def test_sqlite_is_for_one(module_cluster, tmp_path):
    with pytest.raises(RuntimeError, match="postgres://"):
        Sluiced(module_cluster, ELECT, store=str(tmp_path / "x.db"), folder=tmp_path).start()

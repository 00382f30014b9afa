"""A daemon among people who mean no good, and on a machine that breaks: what they do to its files, its ports, its
objects and its clock.  Each attack ends with a gang that starts, or with a line that says what is wrong."""

import os
import signal
import socket
import sqlite3
import ssl
import struct
import subprocess
import threading
import time

import pytest

from cluster import ApiError, work
from cluster.api import Api

from .conftest import crds, until
from .daemon import Sluiced
from .soak import StepClock
from .test_hostile import may_edit_fluxjobs, refusal

CLUSTER = {"node_list": [{"name": "node", "count": 2, "cpu": 4}]}


@pytest.fixture(scope="module")
def served(module_cluster):
    crds(module_cluster)
    return module_cluster


@pytest.fixture
def stored(served, tmp_path):
    """A daemon with a file as its store."""
    with Sluiced(served, store=str(tmp_path / "sluice.db"), folder=tmp_path) as d:
        yield d


def start(cluster, space, name, size=2, scheduler="sluice", **more):
    """How long a gang takes to be placed; its pods run for ever."""
    pods = work.gang(name, size, cpu=0.1, namespace=space, run=600, scheduler=scheduler, **more)
    began = time.monotonic()
    cluster.admin.create_many(pods)
    until(lambda: all(cluster.admin.get("pods", p["metadata"]["name"], space)["spec"].get("nodeName") for p in pods), interval=0.05)
    return time.monotonic() - began


def is_well(d):
    status, body = d.request("GET", "/readyz")
    return status == 200 and "degraded" not in body


# ---- its files ----


def rows(store):
    db = sqlite3.connect(store)
    try:
        return db.execute("SELECT name, space FROM jobs").fetchall()
    finally:
        db.close()


@pytest.mark.parametrize("how", ["removed", "without its log", "replaced", "emptied"])
def test_store_pulled_away(stored, served, space, tmp_path, how):
    """Nothing is called durable that the next process could not read: what was decided is there after a kill."""
    store = tmp_path / "sluice.db"
    start(served, space, "first")
    if how == "removed":
        for part in tmp_path.glob("sluice.db*"):
            if not part.name.endswith("-lock"):
                part.unlink()
    elif how == "without its log":
        (tmp_path / "sluice.db-wal").unlink()
    elif how == "replaced":
        (tmp_path / "other").write_bytes(store.read_bytes())
        (tmp_path / "other").rename(store)
    else:
        os.truncate(store, 0)
    served.admin.create_many(work.gang("next", 2, cpu=0.1, namespace=space, run=600, scheduler="sluice"))
    if how == "emptied":
        until(lambda: not is_well(stored), message="the damage is told")
        for part in tmp_path.glob("sluice.db*"):
            if not part.name.endswith("-lock"):
                part.unlink()
    until(lambda: stored.jobs(space).get("next", {}).get("state") == "running")
    until(lambda: is_well(stored))
    stored.kill()
    assert {"first", "next"} <= {name for name, space_ in rows(store) if space_ == space}, "the file has what was decided"
    stored.start()
    start(served, space, "last")


def test_store_locked_by_somebody(stored, served, space, tmp_path):
    """A person opens the file with sqlite3 and forgets a transaction: nothing starts meanwhile, all does afterwards."""
    held = subprocess.Popen(["python3", "-c", "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
                             "db.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\nsys.stdin.read()", tmp_path / "sluice.db"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert held.stdout.readline() == b"held\n"
    try:
        served.admin.create_many(work.gang("waits", 2, cpu=0.1, namespace=space, run=600, scheduler="sluice"))
        until(lambda: not is_well(stored), message="it is told")
        assert not any(p["spec"].get("nodeName") for p in served.admin.list("pods", space))
    finally:
        held.communicate(b"")
    until(lambda: all(p["spec"].get("nodeName") for p in served.admin.list("pods", space)))


@pytest.mark.parametrize("what", ["directory", "pipe", "nothing", "device", "noise"])
def test_settings_swapped(stored, served, space, what):
    stored.config.unlink()
    if what == "directory":
        stored.config.mkdir()
    elif what == "pipe":
        os.mkfifo(stored.config)
    elif what == "device":
        stored.config.symlink_to("/dev/zero")
    elif what == "noise":
        stored.config.write_bytes(os.urandom(100000))
    for _ in range(3):
        stored.process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    until(lambda: "configuration rejected" in stored.log.read_text(errors="replace"))
    start(served, space, "goes-on")


def test_storm_of_hangups(stored, served, space):
    done = threading.Event()

    def storm():
        while not done.is_set():
            stored.process.send_signal(signal.SIGHUP)
            time.sleep(0.001)

    thread = threading.Thread(target=storm)
    thread.start()
    try:
        took = start(served, space, "storm")
    finally:
        done.set()
        thread.join()
    print(f"a gang of 2 starts in {took:.2f} s during a storm of SIGHUP")
    until(lambda: is_well(stored))


def test_without_standard_descriptors(served, space, tmp_path):
    """Started with none of the three open: no line of the log goes into the store or to the API server."""
    d = Sluiced(served, store=str(tmp_path / "sluice.db"), folder=tmp_path)
    command = [d.exe, "--config", d.config, "--kubeconfig", served.sluice_kubeconfig, "--store", d.store]
    d.process = subprocess.Popen(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *map(str, command)])
    try:
        until(d.ready)
        open_at = [os.readlink(f"/proc/{d.process.pid}/fd/{fd}") for fd in (0, 1, 2)]
        assert open_at == ["/dev/null"] * 3
        start(served, space, "mute")
    finally:
        assert d.stop() == 0
    subprocess.run([d.exe.parent / "sluice", "store", "check", d.store], check=True)


# ---- its ports ----


def raw(address, text, family=socket.AF_INET, tls=False, wait=2.0):
    """All that is answered to these bytes."""
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(wait)
        s.connect(address)
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            s = context.wrap_socket(s)  # noqa: PLW2901
        s.sendall(text)
        got = b""
        try:
            while part := s.recv(65536):
                got += part
        except (TimeoutError, ConnectionError):
            pass
        return got


SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLING = {
    "length and chunks": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED,
    "chunked twice": b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a blank before the colon": b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a folded header": b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "bare line feeds": b"POST /healthz HTTP/1.1\nHost: x\nContent-Length: 0\nTransfer-Encoding: chunked\n\n0\n\n" + SMUGGLED,
    "a negative length": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n" + SMUGGLED,
    "a length with a sign": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello" + SMUGGLED,
    "a length of 2^64": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\n" + SMUGGLED,
    "a chunk of 2^64": b"POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a NUL in a header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n" + SMUGGLED,
    "a body with GET": b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED,
}  # fmt: skip


def test_smuggled_requests(stored, served, space):
    """Where a request ends is read in one way or the connection ends: no port answers a request that hides in another."""
    health = ("127.0.0.1", stored.port("health"))
    https = ("127.0.0.1", stored.port("https"))
    assert raw(health, SMUGGLED + SMUGGLED, wait=0.5).count(b"HTTP/1.1 200") == 2, "requests in a row are answered"
    for name, text in SMUGGLING.items():
        for where, got in {"health": raw(health, text, wait=0.5), "socket": raw(stored.socket, text, socket.AF_UNIX, wait=0.5),
                           "https": raw(https, text, tls=True, wait=0.5)}.items():  # fmt: skip
            assert got.count(b"HTTP/1.1 ") <= 1, f"{name} on {where}: {got[:600]!r}"
    start(served, space, "smuggled")
    assert is_well(stored)


def test_slow_callers(stored, served, space):
    """Hundreds of callers who send a byte now and then, on every port: the others notice nothing."""
    slow = []
    done = threading.Event()

    def drip():
        while not done.is_set():
            for s in list(slow):
                try:
                    s.send(b"X")
                except OSError:
                    pass
            time.sleep(0.2)

    for where, family in [(("127.0.0.1", stored.port("health")), socket.AF_INET), (("127.0.0.1", stored.port("https")), socket.AF_INET),
                          (stored.socket, socket.AF_UNIX)]:  # fmt: skip
        for _ in range(200):
            s = socket.socket(family, socket.SOCK_STREAM)
            # The kernel's limit, not Python's: with settimeout() a Unix socket whose backlog is full refuses at once.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 5, 0))
            s.connect(where)
            s.setblocking(False)
            if where[1] != stored.port("https"):
                s.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-")
            slow.append(s)
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        worst = 0.0
        for _ in range(20):
            began = time.monotonic()
            assert raw(("127.0.0.1", stored.port("health")), b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200")
            assert stored.request("GET", "/v1/queues")[0] == 200
            worst = max(worst, time.monotonic() - began)
        took = start(served, space, "slow")
        print(f"600 slow callers: the slowest answer took {worst:.2f} s, a gang of 2 started in {took:.2f} s")
        assert worst < 2
    finally:
        done.set()
        thread.join()
        for s in slow:
            s.close()


ODD_BODIES = [
    b"", b"null", b"[]", b"0", b'"x"', b"{", b"{}" * 2, b'{"job":null}', b'{"job":1e999}', b'{"job":-0}', b"[" * 100000, b'{"a":' * 5000,
    b'{"\\u0000":"\\ud800"}', b"\xff\xfe", b"\0" * 1000, b'{"job":"x","job":"y"}', b'{"name":"' + b"\xf0\x9f\x92\xa3" * 50000 + b'"}',
    b'{"nodes":[' + b'"n",' * 100000 + b'"n"]}', b'{"from":"9999999999999999999999"}', b" " * 2000000,
]  # fmt: skip


def test_odd_requests(stored, served, space):
    """Every path of the socket with every odd body, and paths that nobody has."""
    start(served, space, "here")
    job = f"{space}/here"
    paths = ["/v1/jobs", f"/v1/jobs/{job}", "/v1/nodes/node-000", "/v1/queues", "/v1/reservations", "/mutate-v1-sluice", "/hold-v1-sluice"]
    verbs = ["cancel", "hold", "release", "priority", "limit", "resize", "drain", "undrain", "reserve"]
    paths += [f"/v1/jobs/{job}/{v}" for v in verbs] + [f"/v1/nodes/node-000/{v}" for v in verbs]
    counts = {}
    for path in paths:
        for body in ODD_BODIES:
            status, _ = stored.request("POST", path, body)
            counts[status] = counts.get(status, 0) + 1
    for path in ["/v1/jobs/%00", "/v1/jobs/..%2f..%2fetc%2fpasswd", "/" + "a" * 7000, "/v1/jobs?" + "a=b&" * 1500, "//v1//jobs", "/v1/jobs/%ff%fe/x", "/v1/jobs/%",
                 "/v1/jobs?namespace=%27%20or%201%3D1"]:  # fmt: skip
        status, _ = stored.request("GET", path)
        counts[status] = counts.get(status, 0) + 1
    print(f"odd requests: {counts}")
    assert not [s for s in counts if s >= 500], counts
    assert stored.jobs(space)["here"]["state"] == "running"
    start(served, space, "odd")


# ---- its clock ----


@pytest.mark.parametrize("year", [1970, 2038, 2106, 2262, 9999])
def test_clock_of_another_time(served, space, tmp_path, year):
    """A clock that was never set, and the ends of what counters of seconds and nanoseconds hold: work goes on, nobody is
    evicted, and all is as it was once the clock is right again."""
    at = {1970: 3, 2038: 2147483647 - 2, 2106: 4294967295 - 2, 2262: 9223372036 - 2, 9999: 253402300799 - 2}[year]
    d = Sluiced(served, {"jobs": {"enforceDeadlines": True}}, store=str(tmp_path / "sluice.db"), folder=tmp_path)
    clock = StepClock(d)
    if not clock.there:
        pytest.skip("a build with sanitizers keeps the time")
    with d:
        start(served, space, "before", annotations={"sluice.sh/duration": "12h"})
        clock.set(int(at - time.time()))
        until(lambda: "clock" in d.log.read_text(), message="the step is logged")
        during = start(served, space, "during", annotations={"sluice.sh/duration": "12h"})
        time.sleep(3)
        clock.set(0)
        after = start(served, space, "after")
        assert all(p["spec"].get("nodeName") and not p["metadata"].get("deletionTimestamp") for p in served.admin.list("pods", space))
        until(lambda: is_well(d))
        print(f"{year}: a gang of 2 starts in {during:.2f} s, with the right time again in {after:.2f} s")
        d.kill()
        d.start()
        assert {n: j["state"] for n, j in d.jobs(space).items()} == {"before": "running", "during": "running", "after": "running"}


# ---- its objects ----


def edits(cluster, space):
    """A client with the edit role in the test's namespace alone."""
    cluster.admin.create({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "edit", "namespace": space},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}],
    })  # fmt: skip
    return Api.from_kubeconfig(cluster.sign_in("mallory", "mallory"))


def test_objects_that_never_rest(stored, served, space):
    """A label of a waiting pod changed as fast as the server takes it, a Job suspended and resumed, the members of a
    running gang moved between groups, a size that jumps: somebody's gang starts, and the books are right afterwards."""
    served.admin.patch("namespaces", space, {"metadata": {"labels": {"sluice.sh/hold": "true"}}}, namespace=None)
    mallory = edits(served, space)
    start(served, space, "bound", labels={"sluice.sh/group": "bound"})
    waits = work.gang("waits", 2, cpu=100, namespace=space, run=1, scheduler="sluice")
    served.admin.create_many(waits)
    flips = work.job("flips", pods=3, namespace=space, cpu=0.1, run=60, scheduler="sluice")
    mallory.create(flips)
    done, counts = threading.Event(), {}

    signed_in = served.sign_in("mallory", "mallory")

    def keep(name, change, pause):
        api, i = Api.from_kubeconfig(signed_in), 0
        while not done.is_set():
            try:
                change(api, i)
                counts[name] = counts.get(name, 0) + 1
            except ApiError:
                pass
            i += 1
            time.sleep(pause)

    def relabel(api, i):
        api.patch("pods", "waits-0", {"metadata": {"labels": {"sluice.sh/group": f"g{i % 5}", "x": str(i)}}}, namespace=space)

    def flip(api, i):
        api.patch("jobs", "flips", {"spec": {"suspend": i % 2 == 0}}, namespace=space)

    def move(api, i):
        api.patch("pods", f"bound-{i % 2}", {"metadata": {"labels": {"sluice.sh/group": f"bound{i % 3}", "fluence.group-size": str(1 + i % 4)}}}, namespace=space)

    def grow(api, i):
        api.patch("jobs", "flips", {"spec": {"parallelism": (1, 99999, 3)[i % 3]}}, namespace=space)

    threads = [threading.Thread(target=keep, args=a) for a in (("labels", relabel, 0.005), ("flips", flip, 0.1), ("moves", move, 0.05), ("sizes", grow, 0.1))]
    for t in threads:
        t.start()
    try:
        took = [start(served, "default", f"{space}-v{i}") for i in range(5) if not time.sleep(1)]
    finally:
        done.set()
        for t in threads:
            t.join()
    longest = stored.metrics()["sluice_cycle_seconds_max"]
    assert set(counts) == {"labels", "flips", "moves", "sizes"}, counts
    print(f"beside {counts} a gang of 2 starts in {[round(t, 2) for t in took]} s; longest cycle {longest:.3f} s")
    assert longest < 1 and stored.process.poll() is None and is_well(stored)
    mallory.patch("jobs", "flips", {"spec": {"suspend": True, "parallelism": 3}}, namespace=space)
    assert all(p["spec"].get("nodeName") for p in served.admin.list("pods", space) if p["metadata"]["name"].startswith("bound"))
    for i in range(5):
        for k in range(2):
            served.admin.delete("pods", f"{space}-v{i}-{k}", "default", grace=0)


def test_statuses_are_ours(stored, served, space):
    """The role that the manifests add to `edit` lets nobody write what only Sluice tells."""
    mallory = edits(served, space)
    may_edit_fluxjobs(served.admin)
    job = {"apiVersion": "jobs.converged-computing.org/v1alpha1", "kind": "FluxJob", "metadata": {"name": "f", "namespace": space},
           "spec": {"jobspec": ""}, "status": {"state": "Running", "submitStatus": "forged"}}  # fmt: skip
    until(lambda: refusal(mallory.create, job) is None)
    assert "forged" not in str(served.admin.get("fluxjobs", "f", space).get("status"))
    said = refusal(mallory.patch, "fluxjobs", "f", {"status": {"submitStatus": "forged"}}, namespace=space, subresource="status")
    assert said and "forbidden" in said.lower(), said

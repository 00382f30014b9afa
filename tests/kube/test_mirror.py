"""The reflector on a live API server: whatever breaks, the mirror equals a fresh list, and nothing is
handed over twice or left out."""

import http.client
import random
import threading
import time
from contextlib import contextmanager

import pytest
from cluster import ApiError, compact, seed

from .mirror import Mirror, fresh
from .proxy import Proxy, through

CLUSTER = {"node_list": [], "without": ("scheduler", "kwok")}


def pod(name, namespace, **labels):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": "churn", **labels}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i",
                                                            "resources": {"requests": {"cpu": "100m"}}}]},
    }


def stubborn(call, *args, fine=(404, 409), **kw):
    """Repeat the request while the server is away; `fine` outcomes mean that an earlier try got through."""
    end = time.monotonic() + 180
    while True:
        try:
            return call(*args, **kw)
        except ApiError as e:
            if e.status in fine:
                return None
            if e.status not in (429, 500, 503, 504) or time.monotonic() > end:
                raise
        except (OSError, http.client.HTTPException):
            if time.monotonic() > end:
                raise
        time.sleep(0.1 + random.random() / 5)


@contextmanager
def every(seconds, action):
    """Do something again and again in the background."""
    stop = threading.Event()

    def loop():
        while not stop.wait(seconds * (0.5 + random.random())):
            action()

    t = threading.Thread(target=loop)
    t.start()
    try:
        yield
    finally:
        stop.set()
        t.join()


def check(mirror, api, resource, namespace):
    want = fresh(api, resource, namespace)
    assert mirror.wait_until(want) == want
    assert mirror.fold() == want
    s = mirror.stats()
    assert s["doubled"] == 0 and s["lost"] == 0 and s["bad"] == 0, s
    return s


def test_every_event_once_while_the_connection_is_cut(module_cluster, tmp_path):
    """No 410 here, so the mirror must hand over the very sequence of events another watch saw."""
    c, ns = module_cluster, "once"
    c.namespace(ns)
    journal = tmp_path / "journal"
    seen, stop = [], threading.Event()

    def watch(version):
        # The server may end a watch that reads too slowly; the next one goes on behind the last event.
        while not stop.is_set():
            for kind, obj in c.admin.watch("pods", ns, version=version, timeout=5):
                m = obj["metadata"]
                version = m["resourceVersion"]
                seen.append(f"{kind} {m['namespace']}/{m['name']} {version}")
                if m["name"] == "last":
                    return

    with Proxy(("127.0.0.1", c.ports["apiserver"])) as proxy:
        with Mirror(through(proxy, c.kubeconfig, tmp_path), "pods", ns, journal=journal) as mirror:
            assert mirror.synced.wait(120)
            version = c.admin.list_full("pods", ns)["metadata"]["resourceVersion"]
            other = threading.Thread(target=watch, args=(version,))
            other.start()
            names = [f"p-{i}" for i in range(1500)]
            with every(0.25, proxy.cut):
                c.admin.create_many([pod(n, ns) for n in names])
                c.admin.map(lambda n: c.admin.patch("pods", n, {"metadata": {"labels": {"x": n}}}, ns), names[:700])
                c.admin.map(lambda n: c.admin.delete("pods", n, ns, grace=0), names[300:1100])
            c.admin.create(pod("last", ns))
            other.join(180)
            stop.set()
            s = check(mirror, c.admin, "pods", ns)
            handed = journal.read_text().splitlines()
            assert handed == seen
            assert s["lists"] == 1 and s["expired"] == 0 and proxy.cuts > 5
            print(f"\n{len(seen)} events, {proxy.cuts} cuts, {s['watches']} watches, {s['repeated']} repetitions dropped")


@pytest.mark.timeout(900)
def test_ten_thousand_pods(module_cluster, tmp_path):
    """Created, changed and deleted while connections are cut, the API server is killed and etcd compacted."""
    c, ns, api = module_cluster, "churn", module_cluster.admin
    c.namespace(ns)
    names = [f"p-{i:05}" for i in range(10_000)]

    def made(i):
        return pod(names[i], ns, thousand=str(i // 1000))

    def delete_thousand(i):
        stubborn(api.delete_all, "pods", ns, labels=f"thousand={i}", grace=0)

    with Proxy(("127.0.0.1", c.ports["apiserver"])) as proxy:
        with Mirror(through(proxy, c.kubeconfig, tmp_path), "pods", ns, page=700) as mirror:
            assert mirror.synced.wait(120)
            with every(0.7, proxy.cut):
                # One in five comes through the API server, which is much slower than etcd.
                killer = threading.Timer(4, lambda: c.restart("apiserver"))
                killer.start()
                for start in range(0, len(names), 500):
                    seed(c, [made(i) for i in range(start, start + 400)])
                    api.map(lambda i: stubborn(api.create, made(i)), range(start + 400, start + 500))
                killer.join()
                killer = threading.Timer(1, lambda: c.restart("apiserver"))
                killer.start()
                api.map(lambda n: stubborn(api.patch, "pods", n, {"metadata": {"labels": {"x": n}}}, ns), names[::10])
                api.map(delete_thousand, range(2, 7), workers=2)
                killer.join()
            middle = check(mirror, api, "pods", ns)
            # Everything forgotten while the mirror was away: it must list again and see the differences.
            gone = middle["expired"]
            pause = threading.Event()
            with every(0.02, lambda: pause.is_set() or proxy.cut()):
                delete_thousand(0)
                api.map(lambda i: stubborn(api.create, pod(f"late-{i}", ns)), range(500))
                # gone and created again under the old name
                api.map(lambda n: (stubborn(api.delete, "pods", n, ns, grace=0), stubborn(api.create, pod(n, ns))),
                        names[9800:])
                compact(c)
                c.restart("apiserver")
                pause.set()
                s = check(mirror, api, "pods", ns)
            assert s["expired"] > gone and s["lists"] > middle["lists"], s
            # one change per difference: 1000 + 200 deletions, 500 + 200 additions at most
            assert s["deleted"] - middle["deleted"] == 1200 and s["added"] - middle["added"] == 700, (middle, s)
            print(f"\n{s['handed']} changes handed over ({s['added']} added, {s['updated']} updated, {s['deleted']} "
                  f"deleted), {proxy.cuts} cuts, {s['watches']} watches, {s['lists']} lists, {s['expired']} times 410, "
                  f"{s['repeated']} repetitions dropped, {s['rss_kb']} kB resident")


@pytest.mark.timeout(900)
def test_memory_of_a_large_mirror(make_cluster):
    """50 000 pods and 5 000 nodes in at most 60 MB, both mirrors and the folded copies of the test together."""
    c = make_cluster("large", **CLUSTER)
    seed(c, [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{i:05}", "labels": {
        "kubernetes.io/hostname": f"n-{i:05}", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": f"zone-{i % 4}", "topology.sluice.sh/rack": f"rack-{i // 32}"}},
        "status": {"capacity": {"cpu": "64", "memory": "256Gi", "pods": "110"},
                   "allocatable": {"cpu": "63500m", "memory": "250Gi", "pods": "110"},
                   "conditions": [{"type": "Ready", "status": "True"}]}} for i in range(5000)])
    c.namespace("big")
    seed(c, [{**pod(f"train-{i // 20:05}-{i % 20}-{random.randrange(16**5):05x}", "big"), "status": {"phase": "Running"}}
             for i in range(50_000)])
    total = 0
    for resource, want in (("nodes", 5000), ("pods", 50_000)):
        with Mirror(c.kubeconfig, resource) as mirror:
            assert mirror.synced.wait(120)
            s = mirror.stats()
            assert s["count"] == want
            total += s["rss_kb"]
            print(f"\n{want} {resource}: {s['rss_kb']} kB resident")
    assert total <= 60 * 1024 + 8 * 1024, total  # two processes, each with about 8 MB of its own

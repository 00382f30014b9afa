"""The rows of the store, outages, and the replay of the past: a real daemon on a real store."""

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import contextmanager

import pytest

from cluster import work
from store.postgres import Postgres

from . import eventlog
from .conftest import until
from .daemon import Sluiced, program

CLUSTER = {"node_list": [{"name": "node", "count": 4, "cpu": 4}]}
as_root = pytest.mark.skipif(os.getuid() != 0 and not os.environ.get("CI"), reason="only root may mount a small file system to fill up")

# The first in line has its promise at once.
FIRST_PROMISED = {"queues": [{"name": "default", "objective": "throughput"}]}


def sluice(*args, code=0):
    p = subprocess.run([program("sluice"), *map(str, args)], capture_output=True, text=True, timeout=300)
    assert p.returncode == code, (p.stdout, p.stderr)
    return p.stdout if code == 0 else p.stderr


def submit(admin, name, size, space, run=300, cpu=4, **more):
    for p in work.gang(name, size, cpu=cpu, namespace=space, run=run, scheduler="sluice", **more):
        admin.create(p)


def bound(admin, space, name):
    return sum(1 for p in admin.list("pods", space) if p["metadata"]["name"].startswith(name + "-") and p["spec"].get("nodeName"))


def metric(d, name):
    text = d.request("GET", "/metrics")[1]
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith(name + " ")))


def degraded(d, *words):
    """Whether the daemon is ready although its store is broken, and says what is wrong."""
    status, body = d.request("GET", "/readyz")
    return status == 200 and body.startswith("degraded\n") and all(w in body for w in words)


def well(d):
    return d.request("GET", "/readyz")[1].startswith("ok\n") and metric(d, "sluice_store_up") == 1


@contextmanager
def tmpfs(folder, size):
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture(scope="module")
def postgres():
    with Postgres() as pg:
        yield pg


# ---- replay


def alter(lines):
    """The export with one more slot in the last part of a start, and the job that starts there."""
    for n, line in enumerate(lines):
        row = json.loads(line)
        if row.get("table") != "events":
            continue
        data = bytearray.fromhex(row["data"])
        for what, content in eventlog.frames(data):
            for kind, job, parts, last in content[1] if what in (eventlog.EVENT, eventlog.PASS) else ():
                if kind == eventlog.START and data[last] == parts[-1][2] == 1:
                    data[last] = 2
                    lines[n] = json.dumps({**row, "data": data.hex()}, separators=(",", ":"))
                    return job
    raise AssertionError("no start in the log")


def test_replay(module_cluster, space, tmp_path):
    admin = module_cluster.admin
    store = tmp_path / "sluice.db"
    with Sluiced(module_cluster, FIRST_PROMISED, store=str(store), folder=tmp_path) as d:
        for g in range(6):
            submit(admin, f"a{g}", 1 + g % 4, space, run=1)
        until(lambda: all(j["state"] != "waiting" for j in d.jobs(space).values()) and d.jobs(space))
        submit(admin, "long", 3, space, run=600)
        until(lambda: bound(admin, space, "long") == 3)
        submit(admin, "next", 4, space, run=1)
        until(lambda: d.jobs(space).get("next", {}).get("state") == "waiting")
        d.kill()
        d.start()
        until(lambda: d.jobs(space).get("next", {}).get("state") == "waiting")
        for i in range(3):
            admin.delete("pods", f"long-{i}", space, grace=0)
        until(lambda: bound(admin, space, "next") == 4)
        # Beside the running daemon.
        assert json.loads(sluice("replay", store, "-o", "json"))["reproduced"]
    answer = json.loads(sluice("replay", store, "-o", "json", "--verify"))
    assert answer["beginnings"] == 2 and answer["reproduced"] and answer["skipped"] == 0
    assert answer["decisions"] >= 9 and answer["events"] > 20
    assert "decisions replayed as recorded (2 beginnings" in sluice("replay", store)
    shown = sluice("replay", store, "--job", f"{space}/next").splitlines()
    assert any("start of job" in line and "node-" in line for line in shown[:-1]), shown
    assert "nothing was decided about a job" in sluice("replay", store, "--job", f"{space}/nosuch", code=1)
    late = json.loads(sluice("replay", store, "-o", "json", "--from", answer["to"]))
    assert late["beginnings"] == 1 and late["decisions"] < answer["decisions"]
    assert "is not a time" in sluice("replay", store, "--from", "noon", code=2)

    lines = sluice("store", "export", store).splitlines()
    job = alter(lines)
    (tmp_path / "altered.jsonl").write_text("\n".join(lines) + "\n")
    sluice("store", "import", tmp_path / "altered.db", tmp_path / "altered.jsonl")
    said = sluice("replay", tmp_path / "altered.db", code=1)
    assert f"job {job}: recorded: start of job {job} " in said and f"replayed: start of job {job} " in said and said.count("\n") == 1
    # A row that is gone is a gap, not a difference.
    gone = [n for n, line in enumerate(lines) if '"table":"events"' in line]
    sluice("store", "import", tmp_path / "gap.db", write(tmp_path / "gap.jsonl", [line for n, line in enumerate(lines) if n != gone[1]]))
    assert "of the log are missing" in sluice("replay", tmp_path / "gap.db", code=1)


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


# ---- outages


def test_postgres_comes_and_goes(module_cluster, space, tmp_path):
    admin = module_cluster.admin
    pg = Postgres()
    try:
        with Sluiced(module_cluster, store=pg.url, folder=tmp_path) as d:  # nothing listens there yet
            until(lambda: degraded(d, "store: cannot be read, no gang starts until it can: ", "refused"))
            assert metric(d, "sluice_store_up") == 0
            submit(admin, "first", 2, space)
            time.sleep(1)
            assert bound(admin, space, "first") == 0
            pg.start()
            until(lambda: bound(admin, space, "first") == 2)
            until(lambda: well(d))
            pg.kill()
            submit(admin, "second", 2, space)
            until(lambda: degraded(d, "store: cannot be written, no gang starts until it can"))
            time.sleep(1)
            assert bound(admin, space, "second") == 0 and d.process.poll() is None
            assert metric(d, "sluice_store_failures_total") > 0
            pg.start()
            until(lambda: bound(admin, space, "second") == 2)
            until(lambda: well(d))
            until(lambda: pg.rows("SELECT name, state FROM jobs WHERE space = '%s' ORDER BY id" % space) == [["first", "5"], ["second", "5"]])
            log = d.log.read_text()
            assert log.count("the store cannot be written: no gang starts until it can") == 1  # once, not each time
            assert "store recovered" in log
        assert json.loads(sluice("replay", pg.url, "-o", "json"))["reproduced"]
    finally:
        pg.stop()


def test_continue_without(module_cluster, space, tmp_path):
    admin = module_cluster.admin
    pg = Postgres()
    try:
        with Sluiced(module_cluster, {"store": {"outage": "continue"}}, store=pg.url, folder=tmp_path) as d:
            until(lambda: degraded(d, "the cluster is the only memory"))
            submit(admin, "first", 2, space)
            until(lambda: bound(admin, space, "first") == 2)
            pg.start()
            until(lambda: well(d))
            until(lambda: [r for r in pg.rows("SELECT name, state FROM jobs") if r[0] == "first"] == [["first", "5"]])
            pg.kill()
            until(lambda: submit_and_see(admin, space, d))
            pg.start()
            until(lambda: well(d))
            until(lambda: len([r for r in pg.rows("SELECT name FROM jobs WHERE state = 5") if r[0].startswith("more")]) >= 1)
    finally:
        pg.stop()


def submit_and_see(admin, space, d):
    if not admin.list("pods", space) or not any(p["metadata"]["name"].startswith("more") for p in admin.list("pods", space)):
        submit(admin, "more", 2, space)
    return degraded(d, "the cluster is the only memory") and bound(admin, space, "more") == 2


@as_root
def test_disk_full(module_cluster, space, tmp_path):
    admin = module_cluster.admin
    with tmpfs(tmp_path / "small", "2m") as small:
        with Sluiced(module_cluster, store=str(small / "sluice.db"), folder=tmp_path) as d:
            submit(admin, "first", 1, space)
            until(lambda: bound(admin, space, "first") == 1)
            with open(small / "filler", "wb", buffering=0) as f:
                try:
                    while f.write(b"\0" * 4096):
                        pass
                except OSError:
                    pass
            number = itertools.count()

            def full():  # when the last page is used up
                submit(admin, f"wave{next(number)}", 1, space, cpu=0.01)
                return degraded(d, "cannot be written, no gang starts until it can", "full")

            def refused():  # SQLite may find a little room when it tidies up its journal
                until(full, interval=0.2)
                again, last = d.log.read_text().count("store recovered"), f"last{next(number)}"
                submit(admin, last, 1, space, cpu=0.01)
                time.sleep(1)
                placed = bound(admin, space, last)
                if d.log.read_text().count("store recovered") != again:
                    return None
                assert not placed and d.process.poll() is None
                return last

            last = until(refused)
            (small / "filler").unlink()
            until(lambda: bound(admin, space, last) == 1)
            until(lambda: well(d))
        assert "nothing wrong" in sluice("store", "check", small / "sluice.db")


@as_root
def test_read_only(module_cluster, space, tmp_path):
    admin = module_cluster.admin
    with tmpfs(tmp_path / "small", "8m") as small:
        sluice("store", "migrate", small / "sluice.db")
        subprocess.run(["mount", "-o", "remount,ro", small], check=True)
        with Sluiced(module_cluster, store=str(small / "sluice.db"), folder=tmp_path) as d:
            until(lambda: degraded(d, "cannot be read, no gang starts until it can", "read"))
            submit(admin, "first", 1, space)
            time.sleep(0.5)
            assert bound(admin, space, "first") == 0
            subprocess.run(["mount", "-o", "remount,rw", small], check=True)
            until(lambda: bound(admin, space, "first") == 1)
            until(lambda: well(d))


@pytest.mark.parametrize("how", ["cut", "flipped", "noise"])
def test_damaged(module_cluster, space, tmp_path, how):
    """A damaged store: no wrong state is loaded, the message says what to do, and the daemon continues from the
    cluster."""
    admin = module_cluster.admin
    store = tmp_path / "sluice.db"
    with Sluiced(module_cluster, store=str(store), folder=tmp_path) as d:
        submit(admin, "runs", 3, space)
        until(lambda: bound(admin, space, "runs") == 3)
        submit(admin, "waits", 2, space)
        until(lambda: d.jobs(space).get("waits", {}).get("state") == "waiting")
        d.stop()
        for wal in tmp_path.glob("sluice.db-*"):
            wal.unlink()
        data = bytearray(store.read_bytes())
        if how == "cut":
            data = data[: len(data) // 2]
        elif how == "noise":
            data[:4096] = os.urandom(4096)
        else:  # a letter of a row, which no check of the pages sees
            assert b'"need"' in data
            data = data.replace(b'"need"', b'"Need"')
        store.write_bytes(data)
        d.start()
        until(lambda: degraded(d, "cannot be read, no gang starts until it can", "damaged", "rebuilds its state from the cluster"))
        submit(admin, "more", 1, space, cpu=0.1)
        time.sleep(0.5)
        assert bound(admin, space, "more") == 0
        for part in tmp_path.glob("sluice.db*"):
            part.rename(tmp_path / f"old-{part.name}")
        until(lambda: bound(admin, space, "more") == 1)
        until(lambda: well(d))
        until(lambda: (j := d.jobs(space))["runs"]["state"] == "running" and j["waits"]["state"] == "waiting")


# ---- mistakes


def refused(cluster, tmp_path, store, *words, **config):
    d = Sluiced(cluster, config, store=str(store), folder=tmp_path)
    with pytest.raises(RuntimeError):
        d.start()
    assert d.process.wait(120) == 1
    assert all(w in d.tail(3) for w in words), d.tail(3)


def test_refused(module_cluster, tmp_path):
    sluice("store", "migrate", tmp_path / "newer.db")
    with sqlite3.connect(tmp_path / "newer.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    refused(module_cluster, tmp_path, tmp_path / "newer.db", "the store has schema version 99", "use a newer sluice")
    other = write(tmp_path / "other.jsonl", [json.dumps({"sluice": "export", "schema": 1, "cluster": "not-this-one"})])
    sluice("store", "import", tmp_path / "other.db", other)
    refused(module_cluster, tmp_path, tmp_path / "other.db", "belongs to cluster not-this-one", "give each cluster its own store")
    refused(module_cluster, tmp_path, tmp_path / "x.db", "leader.elect needs a store all replicas share", leader={"elect": True})


# ---- what is kept


@pytest.fixture(params=["sqlite", "postgresql"])
def kept(request, tmp_path):
    """(url, query) of an empty store."""
    if request.param == "sqlite":
        file = tmp_path / "sluice.db"

        def query(text):
            db = sqlite3.connect(file)
            try:
                return [[str(v) if v is not None else "" for v in row] for row in db.execute(text)]
            finally:
                db.close()

        yield str(file), query
    else:
        with Postgres() as pg:
            yield pg.url, pg.rows


def test_views(module_cluster, space, tmp_path, kept):
    """The names and columns that users of Fluxnetes and Fluxqueue ask for."""
    admin = module_cluster.admin
    url, query = kept
    with Sluiced(module_cluster, FIRST_PROMISED, store=url, folder=tmp_path) as d:
        submit(admin, "runs", 4, space, run=600, annotations={"sluice.sh/duration": "600s"})
        until(lambda: bound(admin, space, "runs") == 4)
        submit(admin, "waits", 3, space, annotations={"sluice.sh/duration": "60s"})
        submit(admin, "half", 3, space, pods=2)
        until(lambda: d.jobs(space).get("waits", {}).get("state") == "waiting")
        groups = "SELECT group_name, namespace, group_size, current_size, duration FROM groups_provisional"
        until(lambda: query(groups) == [["half", space, "3", "2", "0"]], message="the gang that is not complete")
        pods = [[g, f"{g}-{i}", space, "3", s] for g, s, n in (("half", "0", 2), ("waits", "60", 3)) for i in range(n)]
        until(lambda: query("SELECT group_name, name, namespace, group_size, duration FROM pods_provisional ORDER BY name") == pods)
        spec = json.loads(query("SELECT podspec FROM pods_provisional ORDER BY name")[0][0])
        assert spec["metadata"]["name"] == "half-0"
        until(lambda: query("SELECT name FROM reservations"))
        jobspec = "jobspec LIKE 'version: %count: 3%{type: core, count: 4}%system: {duration: 60}%'"  # on one line, whichever program prints it
        (row,) = query(f"SELECT group_name, namespace, group_size, flux_id, name, type, reservation, duration, size, {jobspec}, flux_job_name FROM pending_queue")
        assert row[:3] == ["waits", space, "3"] and row[4:9] == ["waits", "0", "1", "60", "3"] and row[10] == ""
        assert row[9] in ("1", "t")
        assert query("SELECT group_name, name, flux_id FROM reservations") == [["waits", "waits", row[3]]]
        (when,) = query("SELECT created_at FROM pending_queue")
        assert when[0][:4] == time.strftime("%Y")
        # Its pods are deleted, so it failed; what it has used stays.
        for i in range(4):
            admin.delete("pods", f"runs-{i}", space, grace=0)
        until(lambda: bound(admin, space, "waits") == 3)
        until(lambda: query("SELECT name, outcome, size FROM results") == [["runs", "failed", "4"]])
        until(lambda: not query("SELECT name FROM reservations") and not query("SELECT name FROM pending_queue"))
        (used,) = query('SELECT "user", queue, jobs, used FROM usage')
        start, end = map(int, query("SELECT start_s, end_s FROM results")[0])
        # Each member until it went; they go one after the other.  Use counts parts of a second, the row whole ones.
        assert used[:3] == [space, "", "1"] and 4000 * (end - start - 1) <= int(used[3]) <= 4 * 4000 * (end - start + 1)
        assert int(used[3]) > 0
    assert [space, "(first)", "1", f"{int(used[3]) / 1000:.3f}"] in [line.split() for line in sluice("store", "usage", url).splitlines()]


def test_retention(module_cluster, tmp_path):
    """Rows older than store.keepFor are removed; their sums, and the rows that a restart needs, stay."""
    old = int(time.time()) - 7200
    cluster = module_cluster.admin.get("namespaces", "kube-system", None)["metadata"]["uid"]
    rows = [{"sluice": "export", "schema": 1, "cluster": cluster}]
    for i in range(350):
        rows.append({"table": "results", "job": i + 1, "key": f"k{i}", "name": "j", "user": "ada", "queue": "q", "outcome": "ok",
                     "seen_us": 1, "start_s": old - 10, "end_s": old, "size": 1, "used": 1000})  # fmt: skip
    for i in range(350):
        rows.append({"table": "events", "seq": i + 1, "at_us": old * 1000000 + i, "kind": 1 if i % 50 == 0 else 2, "data": "00"})
    store = tmp_path / "sluice.db"
    sluice("store", "import", store, write(tmp_path / "old.jsonl", map(json.dumps, rows)))

    def query(text):
        db = sqlite3.connect(store)
        try:
            return db.execute(text).fetchall()
        finally:
            db.close()

    with Sluiced(module_cluster, {"store": {"keepFor": "1h"}}, store=str(store), folder=tmp_path) as d:
        until(lambda: query("SELECT COUNT(*) FROM results") == [(0,)])
        assert query("SELECT user, queue, jobs, used FROM usage") == [("ada", "q", 350, 350000)]
        # The last of the old logs is followed by the one of this run, which is young.
        until(lambda: query("SELECT MIN(seq), COUNT(*) FROM events WHERE seq <= 350") == [(301, 50)])
        assert d.process.poll() is None


def test_drain_stands(module_cluster, space, tmp_path):
    with Sluiced(module_cluster, store=str(tmp_path / "sluice.db"), folder=tmp_path) as d:
        node = d.get("/v1/nodes")["nodes"][0]["name"]
        assert d.request("POST", f"/v1/nodes/{node}/drain")[0] == 200
        until(lambda: sqlite3.connect(tmp_path / "sluice.db").execute("SELECT name FROM spans").fetchall() == [(f"drain:{node}",)])
        d.kill()
        d.start()
        submit(module_cluster.admin, "wide", 4, space)
        until(lambda: d.jobs(space).get("wide", {}).get("state") == "waiting")
        assert bound(module_cluster.admin, space, "wide") == 0
        assert d.request("POST", f"/v1/nodes/{node}/undrain")[0] == 200
        until(lambda: bound(module_cluster.admin, space, "wide") == 4)


def test_store_of_yesterday(module_cluster, space, tmp_path):
    """An old copy of the store is put back: jobs have come and gone since, and the cluster decides which exist."""
    admin = module_cluster.admin
    store = tmp_path / "sluice.db"
    with Sluiced(module_cluster, store=str(store), folder=tmp_path) as d:
        submit(admin, "old", 4, space)
        until(lambda: bound(admin, space, "old") == 4)
        submit(admin, "keeps", 4, space, run=1)
        until(lambda: d.jobs(space).get("keeps", {}).get("state") == "waiting")
        first = d.jobs(space)["keeps"]["firstSeen"]
        d.stop()
        shutil.copy(store, tmp_path / "yesterday.db")
        d.start()
        for i in range(4):
            admin.delete("pods", f"old-{i}", space, grace=0)
        until(lambda: d.jobs(space).get("keeps", {}).get("state") != "waiting")
        submit(admin, "new", 2, space)
        until(lambda: bound(admin, space, "new") == 2)
        submit(admin, "behind", 4, space)
        until(lambda: d.jobs(space).get("behind", {}).get("state") == "waiting")
        d.stop()
        for part in tmp_path.glob("sluice.db*"):
            part.unlink()
        (tmp_path / "yesterday.db").rename(store)
        d.start()
        until(lambda: d.jobs(space).get("behind", {}).get("state") == "waiting")
        jobs = until(lambda: (j := d.jobs(space))["new"]["state"] == "running" and "old" not in j and j)
        assert first <= jobs["behind"]["firstSeen"]
    assert "nothing wrong" in sluice("store", "check", store)

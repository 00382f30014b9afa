#!/usr/bin/env python3
"""sluice store as it is typed. Run by tests/store/with-postgres: DATABASE_URL is an empty PostgreSQL."""
import json
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SLUICE = str(Path(sys.argv[1]).resolve())
PG = os.environ.pop("DATABASE_URL")
DIR = Path(tempfile.mkdtemp(prefix="sluice-store-"))


def run(*args, stdin=None, env=None):
    p = subprocess.run([SLUICE, "store", *args], cwd=DIR, input=stdin, capture_output=True, timeout=60, env={**os.environ, **(env or {})})
    return p.returncode, p.stdout, p.stderr.decode()


def fails(code, says, *args, stdin=None):
    rc, out, err = run(*args, stdin=stdin)
    ok(rc == code and says in err and err.count("\n") == 1 and not out, f"store {' '.join(args)}: {says}", (rc, out, err))


def line(table, **columns):
    return {"table": table, **columns}


def job(id, name, **more):
    row = dict(
        id=id, key=f"default/{name}", space="default", name=name, object="", kind="Job", user="ada", queue="batch", priority=-3,
        seen_us=1_790_000_000_123_456 + id, state=1, size=4, min=4, max=4, current=4, limit_s=3600, begin_s=0, deadline_s=0,
        planned_s=1_790_003_600, promised_s=1_790_003_600, start_s=0, end_s=0, cause="new", spec='{"größe":"\\" \n"}',
    )  # fmt: skip
    return line("jobs", **{**row, **more})


# In the order of an export: tables, then keys. Upper case sorts before lower, as bytes do; a locale would mix them.
ROWS = [
    {"sluice": "export", "schema": 3, "cluster": "c0ffee"},
    job(1, "b"),
    job(2, "a", priority=9_000_000_000_000_000_000),
    line("pods", job=1, uid="B", space="default", name="b-1", node="", role=0, seen_us=5),
    line("pods", job=1, uid="a", space="default", name="b-0", node="n1", role=1, seen_us=4),
    line("plans", job=1, seq=1, at_us=10, planned_s=99, cause="new"),
    line("spans", id=7, kind="drain", name="drain:n1", from_s=1, to_s=9_223_372_036_854_775_807, spec="{}"),
    line("intents", id=1, job=1, term=3, made_us=77, state=0, verb="bind"),
    line("intent_pods", intent=1, uid="B", space="default", name="b-1", node="n2"),
    line("intent_pods", intent=1, uid="a", space="default", name="b-0", node="n1"),
    line("results", job=9, key="default/z", name="z", user="Zoë", queue="", outcome="ok", seen_us=1, start_s=2, end_s=3, size=4, used=5),
    line("events", seq=1, at_us=10, kind=2, data="00ff10"),
    line("events", seq=2, at_us=11, kind=1, data=""),
    line("past_usage", user="Ada", queue="batch", jobs=3, used=12),
    line("past_usage", user="ada", queue="Batch", jobs=1, used=2),
    line("past_usage", user="ada", queue="batch", jobs=1, used=2),
]


def text(rows):
    return ("\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows) + "\n").encode()


EXPORT = text(ROWS)
(DIR / "all.jsonl").write_bytes(EXPORT)

# ---- there and back
rc, out, err = run("import", "a.db", "all.jsonl")
ok(rc == 0 and b"a.db: 15 rows imported" in out and not err, "import fills a new file", (rc, out, err))
rc, out, err = run("export", "a.db")
ok(rc == 0 and out == EXPORT and not err, "SQLite gives back what it was given, byte for byte", out.decode())
rc, out, err = run("import", PG, "-", stdin=out)
ok(rc == 0 and b"15 rows imported" in out, "import fills PostgreSQL from standard input", (rc, out, err))
rc, out, err = run("export", PG, "pg.jsonl")
ok(rc == 0 and b"15 rows in pg.jsonl" in out and (DIR / "pg.jsonl").read_bytes() == EXPORT, "PostgreSQL gives back the same", (rc, out, err))
ok(not (DIR / "pg.jsonl.part").exists(), "export leaves no partly written file")
rc, out, err = run("import", "sqlite:b.db", "pg.jsonl", "--quiet")
rc2, out2, err2 = run("export", "b.db", "-")
ok(rc == rc2 == 0 and not out and out2 == EXPORT, "SQLite, PostgreSQL, SQLite: byte for byte the same", (err, err2))

# ---- check
for store, backend in (("a.db", b"sqlite"), (PG, b"postgresql")):
    rc, out, err = run("check", store)
    ok(rc == 0 and backend in out and b", 15 rows, " in out and b"nothing wrong" in out, f"check finds nothing wrong with {backend.decode()}", (rc, out, err))
rc, out, err = run("check", env={"DATABASE_URL": PG})
ok(rc == 0 and b"postgresql" in out, "check uses the store of DATABASE_URL", (rc, out, err))
rc, out, err = run("check", "a.db", "-q")
ok(rc == 0 and not out and not err, "check --quiet prints nothing", (out, err))

with sqlite3.connect(DIR / "b.db") as db:
    db.execute("UPDATE jobs SET priority = 1 WHERE id = 1")
db.close()
fails(1, "b.db: table jobs: row 1 is damaged (checksum)", "check", "b.db")
fails(1, "b.db: table jobs: row 1 is damaged (checksum)", "export", "b.db", "bad.jsonl")
ok(not (DIR / "bad.jsonl").exists() and not (DIR / "bad.jsonl.part").exists(), "no export of a damaged store is left behind")
with sqlite3.connect(DIR / "orphan.db") as db:
    sqlite3.connect(DIR / "a.db").backup(db)
    db.execute("DELETE FROM jobs WHERE id = 1")
db.close()
fails(1, "orphan.db: 2 pods without a job", "check", "orphan.db")
whole = (DIR / "a.db").read_bytes()
(DIR / "cut.db").write_bytes(whole[: len(whole) // 2])
fails(1, "the file is damaged (database disk image is malformed); move it away", "check", "cut.db")
(DIR / "noise.db").write_bytes(b"not a database, whatever its name says\n" * 200)
fails(1, "move it away", "check", "noise.db")

# ---- usage
for store in ("a.db", PG):
    rc, out, err = run("usage", store)
    shown = [line.split() for line in out.decode().splitlines()]
    ok(shown[1:] == [["Ada", "batch", "3", "0.012"], ["Zoë", "(first)", "1", "0.005"], ["ada", "Batch", "1", "0.002"], ["ada", "batch", "1", "0.002"]], "usage shows sums per user and queue", (out, err))

# ---- migrate
rc, out, err = run("migrate", "new.db")
ok(rc == 0 and out == b"new.db: created with schema 3\n", "migrate creates a store", (rc, out, err))
rc, out, err = run("usage", "new.db")
ok(rc == 0 and b"no usage recorded yet" in out, "usage says that nothing is recorded yet", (out, err))
rc, out, err = run("migrate", "new.db")
ok(rc == 0 and b"nothing to do" in out, "migrate does nothing the second time", (rc, out, err))
rc, out, err = run("import", "first.db", "-", stdin=text([{**ROWS[0], "schema": 1}, *ROWS[1:]]))
with sqlite3.connect(DIR / "first.db") as db:  # as the first version made it
    db.execute("DROP INDEX events_begin")
    db.execute("PRAGMA user_version = 1")
db.close()
fails(1, 'schema version 1, this program wants 3: run "sluice store migrate"', "check", "first.db")
rc, out, err = run("migrate", "first.db")
ok(rc == 0 and out == b"first.db: schema 1 is now 3\n", "an older schema is brought up to date", (rc, out, err))
rc, out, err = run("export", "first.db")
ok(rc == 0 and out == EXPORT, "a migrated store has all its rows", err)
with sqlite3.connect(DIR / "newer.db") as db:
    sqlite3.connect(DIR / "new.db").backup(db)
    db.execute("PRAGMA user_version = 99")
db.close()
for verb in ("check", "migrate", "export", "import"):
    fails(1, "newer.db: the store has schema version 99, this program knows 3: use a newer sluice", verb, "newer.db")
with sqlite3.connect(DIR / "older.db") as db:
    db.execute("VACUUM")
db.close()
fails(1, 'run "sluice store migrate"', "check", "older.db")

# ---- what cannot be
fails(1, "the store is not empty (table jobs)", "import", "a.db", "all.jsonl")
fails(1, "the store is not empty (table jobs)", "import", PG, "all.jsonl")
fails(1, "nosuch.db: unable to open", "check", "nosuch.db")
ok(not (DIR / "nosuch.db").exists(), "check creates no file")
fails(1, "nosuch.db: unable to open", "export", "nosuch.db")
fails(1, '"mysql://h/d" is neither a file (SQLite) nor postgres://', "check", "mysql://h/d")
fails(1, "nosuch.jsonl: No such file", "import", "c.db", "nosuch.jsonl")
ok(not (DIR / "c.db").exists(), "an import without input creates no file")
fails(1, "nodir/x.jsonl: No such file", "export", "a.db", "nodir/x.jsonl")
fails(1, "connection", "check", "postgres://ada:secret@127.0.0.1:1/none")
ok("secret" not in run("check", "postgres://ada:secret@127.0.0.1:1/none")[2], "passwords are not shown")
if stat.S_ISCHR(os.stat("/dev/full").st_mode):
    fails(1, "/dev/full: No space left", "export", "a.db", "/dev/full")
    ok(stat.S_ISCHR(os.stat("/dev/full").st_mode), "export does not replace a device")

for what, says, data in (
    ("nothing", "standard input: the export is empty", b""),
    ("another file", "line 1: not an export of a sluice store", b'{"apiVersion":"v1"}\n'),
    ("no JSON", "line 2: ", text(ROWS[:1]) + b"oops\n"),
    ("a cut line", "line 4: ", EXPORT[: EXPORT.index(b'"b-1"')]),
    ("an unknown table", 'line 2: unknown table "users"', text([ROWS[0], line("users", id=1)])),
    ("a missing column", "line 2: table plans: column cause is missing", text([ROWS[0], line("plans", job=1, seq=1, at_us=1, planned_s=1)])),
    ("a wrong kind", "line 2: table plans: column seq is missing or of the wrong kind", text([ROWS[0], line("plans", job=1, seq="1", at_us=1, planned_s=1, cause="")])),
    ("odd hexadecimal digits", "column data", text([ROWS[0], line("events", seq=1, at_us=10, kind=2, data="abc")])),
    ("a newer export", "schema version 99, this program knows", text([{**ROWS[0], "schema": 99}])),
):  # fmt: skip
    rc, out, err = run("import", "half.db", "-", stdin=data)
    ok(rc == 1 and says in err and err.count("\n") == 1 and not out, f"import refuses {what}", (rc, out, err))
rc, out, err = run("export", "half.db")
ok(rc == 0 and out == text([{**ROWS[0], "cluster": ""}]), "a refused import leaves no rows", out)

fails(2, "check, migrate, export, import or usage", "repair", "a.db")
fails(2, "which store?", "check")
fails(2, "only export and import take a file", "check", "a.db", "b.db")
fails(2, "too few arguments")
fails(2, "no such option", "check", "a.db", "--fast")

finish()

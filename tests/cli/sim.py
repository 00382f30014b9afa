#!/usr/bin/env python3
"""sluice as it is typed: what is printed, where, and the exit code."""
import csv
import io
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SLUICE = str(Path(sys.argv[1]).resolve())
DIR = Path(tempfile.mkdtemp(prefix="sluice-cli-"))


def run(*args, stdin=None):
    p = subprocess.run([SLUICE, *args], cwd=DIR, input=stdin, capture_output=True, text=True, timeout=60)
    return p.returncode, p.stdout, p.stderr


def fails(code, says, *args, stdin=None):
    rc, out, err = run(*args, stdin=stdin)
    ok(rc == code and says in err and err.count("\n") == 1 and not out, f"sluice {' '.join(args)}: {says}", (rc, out, err))


# Four processors. a (2 of them, 10 s), b (4), c (2 for 8 s): EASY fills the gap in front of b.
LOG = """; MaxProcs: 4
1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 -1 1 -1 -1 -1
2 1 -1 10 4 -1 -1 4 10 -1 1 2 1 -1 1 -1 -1 -1
3 2 -1 8 2 -1 -1 2 8 -1 1 1 1 -1 1 -1 -1 -1
"""
(DIR / "log.swf").write_text(LOG)
(DIR / "bad.swf").write_text(LOG + "4 x y\n5 1 2\n")
(DIR / "empty.swf").write_text("; nothing\n")
(DIR / "cycle.jsonl").write_text(
    '{"kind":"node","name":"n"}\n{"kind":"job","id":1,"run":1,"after":[2]}\n{"kind":"job","id":2,"run":1,"after":[1]}\n'
)

rc, out, err = run("sim", "log.swf", "--nodes", "4", "--cores", "1", "--policy", "easy,fcfs", "--json")
res = json.loads(out) if rc == 0 else []
ok(rc == 0 and not err and [r["policy"] for r in res] == ["easy", "fcfs"], "--json prints one array with one object per policy", (rc, out, err))
keys = "policy jobs avg_bounded_slowdown max_bounded_slowdown mean_flow max_flow mean_wait makespan utilisation seconds"
ok(all(k in r for r in res for k in keys.split()), "each object has the documented keys", out)
# EASY: waits 0, 9, 0; flows 10, 19, 8. FCFS: c starts at 20: waits 0, 9, 18.
ok(res[0]["jobs"] == 3 and res[0]["mean_wait"] == 3 and res[0]["max_flow"] == 19, "EASY gives the waits that were worked out by hand", res[0])
ok(res[1]["mean_wait"] == 9 and res[1]["makespan"] == 28, "FCFS gives the waits that were worked out by hand", res[1])
ok(res[0]["utilisation"] == (20 + 40 + 16) / (4 * 20), "utilisation is the work divided by the time of all cores", res[0])

rc, out, err = run("sim", "log.swf", "-p", "easy/shortest,hybrid:2,conservative,first-fit", "--verify", "--csv", "o.csv", "--html", "o.html", "--svg", "o")
ok(rc == 0 and "average bounded slowdown" in out and "page: o.html" in out, "the output is a table, and names the page", (rc, out, err))
rows = list(csv.DictReader(io.StringIO((DIR / "o.csv").read_text())))
ok(len(rows) == 12 and rows[1]["start"] == "10" and rows[1]["how"] == "reserved", "--csv writes one line per job and policy", rows[:3])
page = (DIR / "o.html").read_text()
ok(page.startswith("<!DOCTYPE html>") and page.count("<svg") == 7 and "<script src" not in page, "--html writes one self-contained page")
for name in ("o-load.svg", "o-compare.svg", "o-frontier.svg", "o-gantt-hybrid-2.svg", "o-gantt-easy-shortest.svg"):
    ok(xml.parse(DIR / name).getroot().tag.endswith("svg"), f"{name} is XML")

# Job 900 is dropped (no run time); the others keep the numbers of their log, and times are as people read them.
LONG = """; MaxProcs: 4
700 0 -1 108000 4 -1 -1 4 108000 -1 1 1 1 -1 1 -1 -1 -1
900 1 -1 0 4 -1 -1 4 10 -1 1 2 1 -1 1 -1 -1 -1
15 100 -1 95 2 -1 -1 2 95 -1 1 1 1 -1 1 -1 -1 -1
"""
rc, out, err = run("sim", "-", "-p", "fcfs", "--csv", "n.csv", stdin=LONG)
rows = list(csv.DictReader(io.StringIO((DIR / "n.csv").read_text())))
ok(rc == 0 and [(r["job"], r["start"]) for r in rows] == [("700", "0"), ("15", "108000")], "--csv uses the job numbers of the log", rows)
ok("1d 6h" in out and "108095" not in out, "the table shows times with days and hours", out)
rc, out, err = run("sim", "-", "-p", "fcfs", "--json", stdin=LONG)
ok(rc == 0 and json.loads(out)[0]["makespan"] == 108095, "JSON shows times in seconds", out)

rc, out, err = run("sim", "-", "--json", stdin=LOG)
ok(rc == 0 and json.loads(out)[0]["jobs"] == 3, "a log on standard input gives the size of the machine in its header", err)
rc, out, err = run("sim", "bad.swf", "--json")
ok(rc == 0 and json.loads(out)[0]["malformed"] == 2 and "line 5: submit time: not a number" in err, "malformed lines are counted and named", err)
rc, out, err = run("sim", "log.swf", "--json", "--until", "5")
ok(rc == 0 and json.loads(out)[0]["unfinished"] == 3, "--until leaves later jobs unfinished", out)

# Four nodes: 1 holds two until 100, 2 wants all and is promised 100, 3 passes it harmlessly, 4 waits behind them.
(DIR / "why.jsonl").write_text(
    '{"kind":"node","name":"n","count":4,"cores":1}\n'
    '{"kind":"job","id":11,"submit":0,"run":100,"limit":100,"slots":2,"cores":1}\n'
    '{"kind":"job","id":12,"submit":1,"run":50,"limit":50,"slots":4,"cores":1}\n'
    '{"kind":"job","id":13,"submit":2,"run":80,"limit":80,"slots":2,"cores":1}\n'
)
rc, out, err = run("sim", "why.jsonl", "-q", "--until", "10", "--why", "12")
ok(rc == 0 and "easy: job 12 at 10 is waiting, place 1, starts 100 at the latest" in out, "--why shows the promise of a job", out)
ok("passed by job 13 (2 slots) at 2: started beside its promise; delay 0s" in out, "--why names the job that passed it", out)
rc, out, err = run("sim", "why.jsonl", "-q", "--until", "10", "--why", "12", "-p", "response")
ok(rc == 0 and "passed by job 13" in out and "delay 0s" in out, "--why shows no harm where the wait of the job itself is longer", out)
for policy in ("response", "balanced"):  # came at 1, limit 50: three times that is 150
    rc, out, err = run("sim", "why.jsonl", "-q", "--until", "10", "--why", "12", "-p", policy, "--max-stretch", "3", "--verify")
    ok(rc == 0 and "it gets a promised start by 151 at the latest" in out, f"--why shows the bound of {policy}", out)
    rc, out, err = run("sim", "why.jsonl", "-q", "--until", "10", "--why", "12", "-p", policy, "--max-wait", "30")
    ok(rc == 0 and "it gets a promised start by 31 at the latest" in out, f"--why shows the bound of {policy} as a time", out)
rc, out, err = run("sim", "why.jsonl", "-q", "--until", "90", "--why", "12")
ok(rc == 0 and "would help: with 2 slots: it would start now" in out, "--why says what would help", out)
rc, out, err = run("sim", "why.jsonl", "-q", "--until", "10", "--why", "99")
ok(rc == 2 and "no job 99" in err, "--why refuses a job that the log does not have", err)
# Half the load: submissions at 0, 2, 4. From 4 on c would run until 12, into b's start: it waits until 20.
rc, out, err = run("sim", "log.swf", "--json", "--scale", "0.5")
ok(rc == 0 and json.loads(out)[0]["mean_wait"] == (0 + 8 + 16) / 3, "--scale makes submissions come faster", out)

fails(1, "line 5", "sim", "bad.swf", "--strict", "--quiet")
fails(1, "no jobs in it", "sim", "empty.swf", "-n", "4")
fails(1, "No such file", "sim", "nosuch.swf")
fails(1, "sluice sim: .: Is a directory", "sim", ".")
(DIR / "bad.swf.gz").write_bytes(bytes.fromhex("1f8b0800000000000003") + b"\xff" * 40)
fails(1, "sluice sim: bad.swf.gz: invalid", "sim", "bad.swf.gz")
fails(1, "cyclic dependency", "sim", "cycle.jsonl")
fails(2, 'unknown policy "sjf"', "sim", "log.swf", "--policy", "easy,sjf")
fails(2, "only hybrid:N", "sim", "log.swf", "--policy", "easy:3")
fails(2, "unknown backfill order", "sim", "log.swf", "--backfill", "longest")
fails(2, "user, perfect, factor", "sim", "log.swf", "--estimates", "best")
fails(2, "must be above 0", "sim", "log.swf", "--scale", "0")
fails(2, "outside 1..1000000", "sim", "log.swf", "--nodes", "0")
fails(2, "not a whole number", "sim", "log.swf", "--nodes", "many")
fails(2, "no such option", "sim", "log.swf", "--nodez", "4")
fails(2, "needs a value", "sim", "log.swf", "--nodes")
fails(2, "too few arguments", "sim")
fails(2, "did you mean sim?", "simulate")
fails(2, "swf or jsonl", "generate", "--format", "csv")
fails(2, "do not fit", "generate", "--nodes", "2", "--max-size", "3")
fails(2, "SWF cannot express", "generate", "--elastic", "0.5", "--format", "swf")

fails(1, "is sluiced running?", "nodes", "--server", "unix:nosuch.sock")
fails(2, "table or json", "jobs", "--output", "xml")
fails(2, "table or json", "nodes", "-o", "")
fails(2, "not a number of members", "resize", "train", "many")
fails(2, "which store?", "replay")
fails(2, "is not a time", "replay", "--from", "yesterday", "nosuch.db")
with open("/dev/full", "w") as full:
    p = subprocess.run([SLUICE, "sim", "log.swf", "-n", "4"], cwd=DIR, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
ok(p.returncode == 1 and "cannot write" in p.stderr, "output that cannot be written is an error", p)

rc, out, err = run("sim", "--help")
ok(rc == 0 and "usage: sluice sim [OPTION]... LOG" in out and "--estimates E" in out, "sluice sim --help shows usage and options", out)
rc, out, err = run("--help")
ok(rc == 0 and "  generate " in out, "sluice --help lists the commands", out)
rc, out, err = run("--version")
ok(rc == 0 and out.startswith("sluice "), "sluice --version prints the version", out)

rc, a, err = run("generate", "--jobs", "50", "--nodes", "8", "--cores", "2", "--seed", "5")
rc2, b, _ = run("generate", "--jobs", "50", "--nodes", "8", "--cores", "2", "--seed", "5")
rc3, c, _ = run("generate", "--jobs", "50", "--nodes", "8", "--cores", "2", "--seed", "6")
ok(rc == rc2 == rc3 == 0 and a == b != c and a.count("\n") == 55, "generate: the seed decides the trace", err)
note = next(line for line in a.splitlines() if line.startswith("; Note: sluice "))
rc, again, err = run(*note.split()[3:])
ok(rc == 0 and again == a, "generate: the command in the header makes the same trace again", (note, err))
rc, d, err = run("generate", "--jobs", "50", "--serial", "0.5", "--max-size", "7", "--max-run", "900", "--users", "3")
rc, again, err = run(*next(line for line in d.splitlines() if line.startswith("; Note: ")).split()[3:])
ok(rc == 0 and again == d, "generate: the header has all options that were given", err)
rc, out, err = run("generate", "--jobs", "200", "--nodes", "8", "--cores", "4", "--per-rack", "4", "--elastic", "0.2", "--close", "0.2", "--failures", "300", "-o", "g.jsonl")
ok(rc == 0 and not out, "generate: a file named .jsonl gets JSON lines", err)
rc, out, err = run("sim", "g.jsonl", "--policy", "fcfs,easy,hybrid:3,conservative,first-fit", "--verify", "--json")
ok(rc == 0 and all(r["jobs"] == 200 and r["verified"] for r in json.loads(out)), "gangs, racks, elastic sizes and failures pass --verify", (out, err))


def steady(text):
    return [{k: v for k, v in r.items() if k != "seconds"} for r in json.loads(text)]


rc, again, err = run("sim", "g.jsonl", "--policy", "fcfs,easy,hybrid:3,conservative,first-fit", "--verify", "--json")
ok(rc == 0 and steady(again) == steady(out), "a second run has the same result")
finish()

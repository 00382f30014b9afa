#!/usr/bin/env python3
"""manual.py SOURCE BUILD: what is written is true.

The commands of README.md are run as typed, where no cluster is needed. Every option, command and setting of the manual
pages is one of the programs, and the other way round.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SOURCE, BUILD = (Path(a).resolve() for a in sys.argv[1:3])


def same(a, b, what):
    ok(a == b, what, f"only written: {sorted(a - b)}\nonly in the program: {sorted(b - a)}")


def say(*command):
    return subprocess.run([BUILD / command[0], *command[1:]], capture_output=True, text=True, timeout=60, check=True).stdout


def written(text, mark=r"--?[a-z]"):
    """The options a piece of a page defines: lines such as *-n*, *--nodes* _N_"""
    found = set()
    for line in re.findall(rf"^\*{mark}.*$", text, re.M):
        found |= set(re.findall(r"\*(--?[A-Za-z][\w-]*)\*", line))
    return found


def offered(text):
    """The options a program's help lists, one on each line."""
    found = set()
    for line in re.findall(r"^ +-.*$", text, re.M):
        found |= set(re.findall(r"(?:^ +|, )(--?[A-Za-z][\w-]*)", line))
    return found


def sections(text, level):
    parts = re.split(rf"^{'#' * level} (.*)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def commands(text):
    return set(re.findall(r"^\*([a-z][a-z-]*)\*", text, re.M))


def page(name):
    return (SOURCE / "docs/man" / (name + ".scd")).read_text()


def manual_sluice():
    chapters = sections(page("sluice.1"), 1)
    live = chapters["COMMANDS THAT ASK THE DAEMON"]
    parts = sections(live, 2)
    every = written(parts["Options of all these commands"])
    some = {t: set(t.removeprefix("Options of ").split(", ")) for t in parts if t != "Options of all these commands"}
    named = commands(live.partition("## ")[0])
    listed = set(re.findall(r"^  ([a-z-]+) ", say("sluice", "--help"), re.M))
    same(named | {"sim", "generate", "store", "replay"}, listed, "sluice(1) lists the commands of the program")
    for c in sorted(listed):
        page_options = written(chapters[c.upper()]) if c.upper() in chapters else every.union(*(written(parts[t]) for t in some if c in some[t]))
        same(page_options, offered(say("sluice", c, "--help")), f"sluice(1) lists the options of {c}")
    used = set(re.findall(r"getenv\(\"(SLUICE_\w+)\"\)", "".join(f.read_text() for f in (SOURCE / "src/cli").glob("*.c"))))
    same(set(re.findall(r"^\*(SLUICE_\w+)\*", chapters["ENVIRONMENT"], re.M)), used, "sluice(1) lists the variables that the program reads")


def manual_query():
    chapters = sections(page("sluice-query.1"), 1)
    p = subprocess.run([BUILD / "sluice-query", "--help"], capture_output=True, text=True, timeout=60)  # to stderr, as the original
    same(written(chapters["OPTIONS"], "-[A-Za-z-]"), offered(p.stdout + p.stderr), "sluice-query(1) lists the options of the program")
    graph = SOURCE / "examples/cluster.graphml"
    p = subprocess.run([BUILD / "sluice-query", "-d", "-L", graph], input="help\nquit\n", capture_output=True, text=True, timeout=60)
    same(commands(chapters["COMMANDS"]), set(re.findall(r"INFO: ([a-z-]+) \(", p.stdout + p.stderr)), "sluice-query(1) lists the commands of the program")


def manual_sluiced():
    chapters = sections(page("sluiced.8"), 1)
    same(written(chapters["OPTIONS"]), offered(say("sluiced", "--help")), "sluiced(8) lists the options of the program")
    levels = re.search(r"--log-level.*\n\t(.*?)\. Default", chapters["OPTIONS"])[1]
    for level in re.findall(r"\*(\w+)\*", levels):
        ok(json.loads(say("sluiced", "--log-level", level, "--print-config"))["log"]["level"] == level, f"sluiced(8): --log-level {level} sets the level")
    p = subprocess.run([BUILD / "sluiced", "--log-level", "loud", "--print-config"], capture_output=True, text=True, timeout=60)
    ok(p.returncode == 2 and not p.stdout and '"loud"' in p.stderr, "sluiced(8): another log level is refused", p)


def manual_old_options():
    """What an old option sets, by the page, is what it changes; an ignored one changes nothing."""
    values = {"BOOL": "true", "ADDR": "127.0.0.1:1", "SECONDS": "77", "N": "77", "LEVEL": "error", "NAME": "json", "PORT": "4242"}
    plain = dict(flat(json.loads(say("sluiced", "--print-config"))))
    rows = re.findall(r"^\*--([\w-]+)\*(?:\[=| )_(\w+)_\]?\n\t(?:Sets \*([\w.]+)\*|Ignored: \w)", sections(page("sluiced.8"), 1)["OLD OPTIONS"], re.M)
    ok(len(rows) == 18, "sluiced(8) lists 18 old options", len(rows))
    for name, word, sets in rows:
        now = dict(flat(json.loads(say("sluiced", f"--{name}={values[word]}", "--print-config"))))
        same({sets} - {""}, {k for k in now if now[k] != plain[k]}, f"sluiced(8): --{name} changes the setting that the page names")
    same({"log.level"}, {k for k, v in flat(json.loads(say("sluiced", "-v=9", "--print-config"))) if v != plain[k]}, "sluiced(8): -v=9 changes log.level alone")
    for wrong in ("--leader-elect=perhaps", "--qps=0", "--burst=many", "--duration=long", "--zap-encoder=xml"):
        p = subprocess.run([BUILD / "sluiced", wrong, "--print-config"], capture_output=True, text=True, timeout=60)
        ok(p.returncode == 2 and wrong.partition("=")[0] in p.stderr, f"sluiced(8): {wrong} is refused", p)


def manual_variables():
    plain = dict(flat(json.loads(say("sluiced", "--print-config"))))

    def changes(file="", **variables):
        args = [BUILD / "sluiced", "--print-config"] + (["-c", file] if file else [])
        p = subprocess.run(args, env={**os.environ, **variables}, capture_output=True, text=True, timeout=60)
        return {k: v for k, v in flat(json.loads(p.stdout)) if v != plain[k]}

    same({("store.url", "postgres://h/d")}, set(changes(DATABASE_URL="postgres://h/d", PGHOST="x").items()), "sluiced(8): DATABASE_URL sets store.url")
    same({("store.url", "postgres://")}, set(changes(PGHOST="x").items()), "sluiced(8): PGHOST sets store.url")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write("webhook: {enabled: true}\n")
        f.flush()
        same({("webhook.enabled", True)}, set(changes(f.name, ENABLE_WEBHOOKS="true").items()), "sluiced(8): ENABLE_WEBHOOKS=true leaves the webhook on")
        same(set(), set(changes(f.name, ENABLE_WEBHOOKS="false").items()), "sluiced(8): ENABLE_WEBHOOKS=false switches the webhook off")


def flat(v, above=""):
    """Settings by their full names."""
    for key, x in v.items():
        if isinstance(x, dict):
            yield from flat(x, f"{above}{key}.")
        else:
            yield above + key, json.dumps(x) if isinstance(x, list) else x


def settings(schema, above=""):
    for key, v in schema["properties"].items():
        if "properties" in v:
            yield from settings(v, f"{above}{key}.")
            continue
        yield above + key, v
        if "properties" in v.get("items", {}):
            yield from settings(v["items"], f"{above}{key}[].")


def about(v):
    """The line of facts that the page must give for a setting."""
    kind = {"integer": "Whole number", "boolean": "True or false", "array": "List"}.get(str(v["type"]), str(v["type"]).capitalize())
    if isinstance(v["type"], list):
        kind = "Duration"
    if "enum" in v:
        kind = "One of " + ", ".join(f"*{e}*" for e in v["enum"])
    if "maximum" in v:
        kind += f" {v['minimum']}..{v['maximum']}"
    default = v.get("x-default")
    kind += "; needed" if default is None else f"; default *{default}*" if default else "; default empty"
    return kind + ("; read at start" if v["x-restart"] else "")


def manual_settings():
    text = page("sluiced.yaml.5")
    entries = dict(re.findall(r"^\*([A-Za-z.\[\]]+)\*\n\t(.*)\+\+\n", text, re.M))
    known = dict(settings(json.loads(say("sluiced", "--print-schema"))))
    same(set(entries), set(known), "sluiced.yaml(5) lists the settings of the program")
    wrong = [f"{k}: written: {entries[k]}\n   program: {about(v)}" for k, v in known.items() if k in entries and entries[k] != about(v)]
    ok(not wrong, "sluiced.yaml(5) gives the types, ranges and defaults of the program", "\n".join(wrong))
    example = re.search(r"^# EXAMPLE\n+```\n(.*?)^```", text, re.M | re.S)[1]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(example)
        f.flush()
        shown = json.loads(say("sluiced", "--config", f.name, "--print-config"))
    ok(shown["jobs"]["defaultDuration"] == 1800 and shown["queues"][1]["maxDuration"] == 7 * 86400, "sluiced.yaml(5): the example means what it says")


def readme():
    text = (SOURCE / "README.md").read_text()
    for word in ("make demo", "make test"):
        ok(word in text, f"README names {word}")
    blocks = re.findall(r"(<!-- needs a cluster -->\n)?```(\w*)\n(.*?)^```", text, re.M | re.S)
    with tempfile.TemporaryDirectory(prefix="sluice-readme-") as folder:
        folder = Path(folder)
        (folder / "build").symlink_to(BUILD)
        (folder / "examples").symlink_to(SOURCE / "examples")
        output = ""
        for cluster, kind, block in blocks:
            if kind == "sh" and not cluster:
                p = subprocess.run(["sh", "-e", "-c", block], cwd=folder, capture_output=True, text=True, timeout=60)
                output += p.stdout
                ok(p.returncode == 0, "README: " + block.splitlines()[0], f"{p.returncode}\n{p.stderr}")
        shown = next(b for _, kind, b in blocks if kind == "text")
        ok(shown in output, "README: the query shell prints what is shown", output)
        ok((folder / "week.html").stat().st_size > 1000, "README: the page is written")


def makefile():
    text = (SOURCE / "Makefile").read_text()
    told = set(re.findall(r"^#   make ?([\w-]*)", text, re.M)) - {""}
    goals = set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split())
    ok(told <= goals, "Makefile: every goal in the help exists", told - goals)
    # all is make alone; the others are told beside their neighbours or called by them
    untold = goals - told - {"all", "help", "setup", "cluster-down", "cluster-test", "format-check"}
    ok(not untold, "Makefile: the help lists every goal", untold)
    for name, text in pages().items():
        named = set(re.findall(r"(?:`|^|    )make ([a-z][\w-]*)", text, re.M))
        ok(named <= goals, f"{name}: every goal of make that it names exists", named - goals)


def pages():
    """{name: text} of everything that is written for readers."""
    return {str(f.relative_to(SOURCE)): f.read_text() for f in sorted([*SOURCE.glob("*.md"), *SOURCE.glob("docs/*.md")])}


def links():
    index = (SOURCE / "docs/README.md").read_text()
    for name, text in pages().items():
        targets = [t for t in re.findall(r"\]\(([^)#]+)", text) if "://" not in t]
        lost = [t for t in targets if not (SOURCE / name).parent.joinpath(t).exists()]
        ok(not lost, f"{name}: no link is dead", lost)
        if name.startswith("docs/"):
            ok(name == "docs/README.md" or f"]({Path(name).name})" in index, f"{name} is in the index")
    for f in sorted((SOURCE / "docs/img").glob("*.svg")):
        ok(xml.parse(f).getroot().tag.endswith("svg"), f"{f.name} is a picture")


def named_commands():
    """Each `sluice ...` and `sluiced ...` of the pages, in a block or a sentence, is a command with options it has."""
    known = {c: offered(say("sluice", c, "--help")) for c in re.findall(r"^  ([a-z-]+) ", say("sluice", "--help"), re.M)}
    daemon = offered(say("sluiced", "--help")) | written(sections(page("sluiced.8"), 1)["OLD OPTIONS"])
    for name, text in pages().items():
        wrong, seen = [], 0
        places = re.findall(r"`([^`\n]+)`", text) + [line for kind, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.M | re.S) if kind in ("sh", "") for line in block.splitlines()]
        for place in places:
            m = re.match(r"(?:\$ )?(?:kubectl |build/)?(sluiced?)(?: (.*))?$", place.partition("  #")[0].strip())
            if not m or not m[2]:
                continue
            command = re.split(r"[|>&]", m[2])[0]
            first = command.split()[0]
            options = set(re.findall(r"(?<!\S)(--?[A-Za-z][\w-]*)", command))
            seen += 1
            if m[1] == "sluiced":
                wrong += [place] if options - daemon else []
            elif first in known:
                wrong += [place] if options - known[first] else []
            elif not first.startswith("-"):
                wrong.append(place)
            elif options - set().union(*known.values()) - {"--version"}:
                wrong.append(place)
        ok(not wrong, f"{name}: {seen} commands have only options that exist", "\n".join(wrong))


def named_things():
    """Settings, metrics and files that the pages name exist."""
    schema = json.loads(say("sluiced", "--print-schema"))
    known = {k.replace("[]", "") for k, _ in settings(schema)} | set(schema["properties"])
    groups = {k.split(".")[0] for k in known if "." in k}
    values = set(re.findall(r"^\| `([\w.]+)`", (SOURCE / "charts/sluice/README.md").read_text(), re.M))
    source = "".join(f.read_text() for f in SOURCE.glob("src/**/*.c"))
    for name, text in pages().items():
        words = {w.replace("[]", "") for w in re.findall(r"`([a-z]+(?:\[\])?\.[a-zA-Z.]+)(?::[^`]*)?`", text)}
        lost = {w for w in words if w.split(".")[0] in groups and not w.endswith((".yaml", ".c", ".h", ".md", ".py", ".sh", ".svg"))} - known - values
        ok(not lost, f"{name}: every setting that it names exists", lost)
        lost = {w for w in re.findall(r"`(sluice_[a-z_]+)`", text) if f'"{w}"' not in source and w not in source}
        ok(not lost, f"{name}: every metric that it names exists", lost)
        files = set(re.findall(r"`((?:src|tests|deploy|hack|tools|examples|bench|docs|base|control|kube|serve|queue)/[\w./-]*\.[a-z]+)", text))
        lost = {f for f in files if not (SOURCE / f).exists() and not (SOURCE / "src" / f).exists() and not (SOURCE / "docs" / f).exists()}
        ok(not lost, f"{name}: every file that it names exists", lost)
    keys = {line.split()[0] for line in say("sluiced", "--print-keys").splitlines()}
    told = set(re.findall(r"`((?:[a-z0-9.-]+/|fluence\.|fluxnetes\.|fluxqueue\.|pod-group\.)[a-z0-9.-]+)`", pages()["docs/groups.md"].partition("## Elastic")[0]))
    same(told, keys, "docs/groups.md lists the keys of the program")


def architecture():
    text = pages()["ARCHITECTURE.md"]
    for place in ("src", "tests", "."):
        folders = {f.name for f in (SOURCE / place).iterdir() if f.is_dir() and not f.name.startswith((".", "build", "dist", "__"))}
        lost = {f for f in folders if not re.search(rf"`(?:{place}/)?{f}[`/]", text)}
        ok(not lost, f"ARCHITECTURE.md: every folder of {place} is on the map", lost)


for check in (manual_sluice, manual_query, manual_sluiced, manual_old_options, manual_variables, manual_settings, readme, makefile, links,
              named_commands, named_things, architecture):  # fmt: skip
    check()
finish()

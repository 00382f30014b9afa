#!/usr/bin/env python3
"""tools/layers and tools/calls in a tree of a few lines: what they must refuse, they refuse."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

ROOT = Path(sys.argv[1])
CC = sys.argv[2]
RUN_H = "#pragma once\nvoid slu_run(void);\n"
RUN_C = '#include "control/run/run.h"\n\nvoid slu_run(void)\n{\n}\n'


def tree(files: dict[str, str], where: str) -> Path:
    """A repository with our tools and these sources, compiled as meson names the objects."""
    root = Path(where)
    (root / "tools").mkdir()
    for tool in ("layers", "calls"):
        shutil.copy(ROOT / "tools" / tool, root / "tools" / tool)
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    for name in files:
        layer, rest = name.split("/", 1)
        out = root / "build" / "src" / layer / f"lib{layer}.a.p" / (rest.replace("/", "_") + ".o")
        out.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".c"):
            subprocess.run([CC, "-w", f"-I{root / 'src'}", "-c", root / "src" / name, "-o", out], check=True)
    return root


def ask(files: dict[str, str], tool: str, cycles: str = "") -> tuple[int, str]:
    with tempfile.TemporaryDirectory() as where:
        root = tree(files, where)
        (root / "ARCHITECTURE.md").write_text(cycles)
        args = [root / "tools" / tool] + ([root / "build"] if tool == "calls" else [])
        r = subprocess.run(args, capture_output=True, text=True)
        return r.returncode, r.stdout + r.stderr


def both(above: str, what: str, layers: int, calls: int) -> None:
    files = {"control/run/run.h": RUN_H, "control/run/run.c": RUN_C} | {
        name: text for name, text in [above.split("|", 1)]
    }
    for tool, want in (("layers", layers), ("calls", calls)):
        rc, text = ask(files, tool)
        ok(rc == want and (not want or "must not" in text), f"{tool}: {what} ({text.strip().splitlines()[-1]})")


both('control/hold/hold.c|#include "control/run/run.h"\n\nvoid slu_hold(void)\n{\n\tslu_run();\n}\n',
     "a room calls one below it", 0, 0)
both('control/cluster/nodes.c|#include "control/run/run.h"\n\nvoid slu_node(void)\n{\n\tslu_run();\n}\n',
     "a room includes one above it and calls it", 1, 1)
both("control/cluster/nodes.c|void slu_run(void);\nvoid slu_node(void)\n{\n\tslu_run();\n}\n",
     "a call upwards without a header is seen by its symbol", 0, 1)
rc, text = ask({"control/attic/x.c": "int slu_x;\n"}, "layers")
ok(rc == 1 and "not in a room" in text, "layers: a folder of control that is no room is refused")
rc, text = ask({"queue/q.c": '#include "kube/object.h"\n', "kube/object.h": ""}, "layers")
ok(rc == 1 and "queue must not include kube" in text, "layers: a layer includes one it must not know")
rc, text = ask({"gang/a.c": '#include "gang/gang_internal.h"\n', "gang/gang_internal.h": ""}, "layers")
ok(rc == 0, "layers: a private header is included in its own folder")
rc, text = ask({"queue/q.c": '#include "gang/gang_internal.h"\n', "gang/gang_internal.h": ""}, "layers")
ok(rc == 1 and "private to gang" in text, "layers: a private header is refused to other folders")
ring = {f"queue/{a}.c": f"void slu_{b}(void);\nvoid slu_{a}(void)\n{{\n\tslu_{b}();\n}}\n"
        for a, b in ("ab", "bc", "cd", "da")}
rc, text = ask(ring, "calls")
ok(rc == 1 and "4 files (too many)" in text, "calls: a cycle of four files is too large")
del ring["queue/d.c"], ring["queue/c.c"]
ring["queue/c.c"] = "void slu_a(void);\nvoid slu_c(void)\n{\n\tslu_a();\n}\n"
rc, text = ask(ring, "calls")
ok(rc == 1 and "3 files (not in ARCHITECTURE.md)" in text, "calls: a cycle of three files needs a row in ARCHITECTURE.md")
rc, text = ask(ring, "calls", "| `queue`: a.c, b.c, c.c | they are one |\n")
ok(rc == 0 and "3 files:" in text, "calls: a cycle of three files with a row may stay")
rc, text = ask(ring, "calls", "| `queue`: a.c, b.c, c.c | they are one |\n| `queue`: a.c, d.c | gone |\n")
ok(rc == 1 and "names a cycle that is none: queue/a.c queue/d.c" in text, "calls: a row without its cycle is refused")
rc, text = ask({"cli/a.c": "int slu_table;\n", "query/b.c": "void slu_table(void)\n{\n}\n"}, "calls")
ok(rc == 1 and "slu_table is defined in cli/a.c and query/b.c" in text, "calls: a name that two libraries define is refused")
finish()

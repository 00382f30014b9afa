#!/usr/bin/env python3
"""attacks.py SOURCE: every test that docs/attacks.md names exists."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SOURCE = Path(sys.argv[1]).resolve()


def exists(file, name):
    if file.startswith("tests/"):
        return (SOURCE / file).exists()
    path = SOURCE / "tests" / ("unit" if file.endswith(".c") else "e2e") / file
    if not path.exists():
        return False
    text = path.read_text()
    if file.endswith(".py"):
        return re.search(rf"^def {name}\(", text, re.M) is not None
    return re.search(rf"^(static void (test_)?{name}|int {name})\(", text, re.M) is not None


rows = [line for line in (SOURCE / "docs" / "attacks.md").read_text().splitlines() if line.startswith("| ")]
named = [m for line in rows for m in re.findall(r"`((?:tests/\S+/)?test_\w+\.(?:c|py))(?: (\w+))?`", line.rpartition(" | ")[2])]
ok(len(named) > 60, "the page names its tests", len(named))
for file, name in named:
    ok(exists(file, name), f"{file} {name} exists")
finish()

"""The Python package has the types that it declares."""

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "python"


def check(folder, tmp_path):
    """mypy as pyproject.toml sets it."""
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", tmp_path / "cache", folder],
                          capture_output=True, text=True)


def test_package(tmp_path):
    done = check(PACKAGE / "sluice", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_type_is_seen(tmp_path):
    folder = tmp_path / "sluice"
    folder.mkdir()
    for file in (PACKAGE / "sluice").glob("*.py"):
        (folder / file.name).write_text(file.read_text().replace("def get_group(self, group: str) -> int:", "def get_group(self, group: str) -> str:"))
    done = check(folder, tmp_path)
    assert done.returncode == 1 and "[return-value]" in done.stdout, done.stdout + done.stderr

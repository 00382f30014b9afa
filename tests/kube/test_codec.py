"""Random objects of every kind, written by the published Go libraries: both encodings decode alike."""

import os
import subprocess

from .mirror import ROOT, tool


def test_random_objects_in_both_encodings(tmp_path):
    objgen = tmp_path / "objgen"
    subprocess.run([os.environ.get("SLUICE_GO", "go"), "build", "-o", objgen, "."], cwd=ROOT / "tests/kube/objgen",
                   check=True, timeout=800)
    for seed in ("1", "2"):
        subprocess.run([objgen, "random", seed, "200", tmp_path], check=True, timeout=300)
        r = subprocess.run([tool("codec_tool"), tmp_path], capture_output=True, text=True, timeout=300)
        print(r.stdout)
        assert r.returncode == 0 and "not ok" not in r.stdout, r.stdout

"""Random objects of every kind, written by the published Go libraries: both encodings decode alike."""

import subprocess

from .mirror import ROOT, tool


def test_random_objects_in_both_encodings(tmp_path):
    objgen = tmp_path / "objgen"
    go = subprocess.run([ROOT / "hack/cluster/build", "--go"], check=True, capture_output=True, text=True, timeout=800).stdout.strip()
    subprocess.run([go, "build", "-o", objgen, "."], cwd=ROOT / "tests/kube/objgen", check=True, timeout=800)
    for seed in ("1", "2"):
        subprocess.run([objgen, "random", seed, "200", tmp_path], check=True, timeout=300)
        r = subprocess.run([tool("codec_tool"), tmp_path], capture_output=True, text=True, timeout=300)
        print(r.stdout)
        assert r.returncode == 0 and "not ok" not in r.stdout, r.stdout

"""Three minutes of what `make soak` does for thirty (soak.py tells what that is)."""

import json
import os

import pytest

from .conftest import crds
from .daemon import Sluiced
from .soak import FAULTS, NODES, SETTINGS, Soak

SECONDS = int(os.environ.get("SLUICE_SOAK", "180"))
CLUSTER = {"node_list": NODES}


@pytest.mark.timeout(SECONDS + 600)
def test_soak(module_cluster, tmp_path):
    module_cluster.namespace("soak")
    crds(module_cluster)
    d = Sluiced(module_cluster, SETTINGS, store=str(tmp_path / "sluice.db"))
    soak = Soak(module_cluster, d, "soak", seed=7, api_deaths_s=90)
    with d:
        figures = soak.run(SECONDS)
        assert not soak.bad, json.dumps(figures, indent=1) + d.tail(30)
        assert figures["kills"] >= SECONDS // 90 and figures["api_deaths"] >= 1
        for kind in FAULTS:
            assert figures[kind] >= 1 or (kind == "clock_steps" and not soak.clock.there), f"{kind}: none"
        assert figures["submitted"] >= SECONDS // 12, "little was asked of it"
        assert soak.memory_flat(), json.dumps(figures)
        print(json.dumps(figures))

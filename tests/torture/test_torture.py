"""A sample of `make torture`: both stores side by side, at least 100 kills at crash points."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .lives import STORES, torture

POINTS = 52


@pytest.mark.timeout(600)
def test_killed_at_every_write():
    with ThreadPoolExecutor(len(STORES)) as pool:
        reports = list(pool.map(lambda store: torture(store, POINTS, seed=7, say=lambda text: None), STORES))
    for report in reports:
        print(report.text())
        assert not report.wrong, report.text()
        assert sum(report.kills.values()) >= POINTS

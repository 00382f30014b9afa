"""LAMMPS over MPI, as a Job, and as two runs at once through the default scheduler and through Sluice."""

import time

from cluster.patience import until

from . import mpi
from .test_gangs import condition, job, phases, pods, submit


def test_lammps_over_four_pods(real, sluiced, space):
    submit(real, space, job("lammps", 4, "RANK=$JOB_COMPLETION_INDEX" + mpi.RANK, image=mpi.IMAGE))
    until(lambda: phases(real, space, "lammps") == ["Running"] * 4)
    there = sorted(pods(real, space, "lammps"), key=lambda p: p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
    mpi.begin(real, space, there)
    try:
        until(lambda: condition(real, space, "lammps", "Complete") or condition(real, space, "lammps", "Failed"), 600)
    finally:
        log = real.kubectl("logs", "-n", space, there[0]["metadata"]["name"])
        print(log)
    assert condition(real, space, "lammps", "Complete"), log[-2000:]
    assert "on 4 procs for 100 steps with 4000 atoms" in log


def interleaved(real, space, scheduler):
    """Two runs of three pods, which arrive in turns, on four nodes."""
    a, b = (mpi.pods(name, 3, space, scheduler) for name in ("a", "b"))
    for pair in zip(a, b):
        for p in pair:
            real.admin.create(p)


def test_two_runs_clog_under_the_default_scheduler_and_finish_through_sluice(real, sluiced, space):
    interleaved(real, space, None)
    until(lambda: [mpi.phases(real, space, n).count("Running") for n in ("a", "b")] == [2, 2])
    time.sleep(5)
    assert [mpi.phases(real, space, n).count("Pending") for n in ("a", "b")] == [1, 1], "each holds two nodes and waits for the other's"
    real.admin.delete_all("pods", space, grace=0)
    until(lambda: not real.admin.list("pods", space))

    interleaved(real, space, "sluice")
    begun = set()

    def finished():
        for name in ("a", "b"):
            now = mpi.phases(real, space, name)
            assert "Failed" not in now, now
            if now == ["Running"] * 3 and name not in begun:
                mpi.begin(real, space, mpi.members(real, space, name))
                begun.add(name)
        return all(mpi.phases(real, space, n) == ["Succeeded"] * 3 for n in ("a", "b"))

    until(finished, 600)

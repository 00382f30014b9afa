"""LAMMPS over MPI, as a Job, as an MPIJob and a JobSet with their published controllers, and as two runs at once through the default scheduler and through Sluice."""

import time

from cluster.patience import until
from operators.operators import Operators

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


def test_lammps_as_an_mpijob(real, sluiced, space):
    """Launcher and workers are one gang of two roles; mpirun reaches the workers with the keys and the host file of the operator."""
    with Operators(real, ["mpi-operator"]):
        real.admin.create(mpi.mpijob("melt", 3, space))

        def running():
            there = real.admin.list("pods", space)
            return there if [p["status"].get("phase") for p in there] == ["Running"] * 4 else None

        there = until(running, message="launcher and three workers run")
        assert any(j["namespace"] == space and j["size"] == 4 for j in sluiced.jobs().values()), sluiced.jobs()
        workers = {p["spec"]["nodeName"] for p in there if "-worker-" in p["metadata"]["name"]}
        assert len(workers) == 3, "each worker has a node to itself"
        launcher = mpi.tell_names(real, space, "melt", there)

        def ended():
            conditions = real.admin.get("mpijobs", "melt", space).get("status", {}).get("conditions", [])
            return {c["type"] for c in conditions if c["status"] == "True"} & {"Succeeded", "Failed"}

        how = until(ended, 600, message="the MPIJob ends")
        log = real.kubectl("logs", "-n", space, launcher)
        print(log)
        assert how == {"Succeeded"}, log[-2000:]
        assert "on 3 procs for 100 steps with 4000 atoms" in log
        real.admin.delete("mpijobs", "melt", space, propagation="Background")
        until(lambda: not real.admin.list("pods", space), message="the pods go with it")


def test_lammps_as_a_jobset(real, sluiced, space):
    """Two Jobs of one JobSet, a launcher and its workers, are one gang."""
    def part(name, size, rank):
        template = job(name, size, f"RANK={rank}{mpi.RANK}", image=mpi.IMAGE)["spec"]["template"]
        return {"name": name, "replicas": 1, "template": {"spec": {"parallelism": size, "completions": size, "backoffLimit": 0, "template": template}}}

    with Operators(real, ["jobset"]):
        real.admin.create({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "melt", "namespace": space},
                           "spec": {"replicatedJobs": [part("launcher", 1, 0), part("workers", 3, 1)]}})  # fmt: skip

        def running():
            there = real.admin.list("pods", space)
            return there if [p["status"].get("phase") for p in there] == ["Running"] * 4 else None

        there = sorted(until(running, message="launcher and three workers run"), key=lambda p: p["metadata"]["name"])  # melt-launcher-... is the first
        assert any(j["namespace"] == space and j["size"] == 4 for j in sluiced.jobs().values()), sluiced.jobs()
        assert len({p["spec"]["nodeName"] for p in there}) == 4
        mpi.begin(real, space, there)

        def ended():
            conditions = real.admin.get("jobsets", "melt", space).get("status", {}).get("conditions", [])
            return {c["type"] for c in conditions if c["status"] == "True"} & {"Completed", "Failed"}

        how = until(ended, 600, message="the JobSet ends")
        log = real.kubectl("logs", "-n", space, there[0]["metadata"]["name"])
        assert how == {"Completed"}, log[-2000:]
        assert "on 4 procs for 100 steps with 4000 atoms" in log
        real.admin.delete("jobsets", "melt", space, propagation="Background")
        until(lambda: not real.admin.list("pods", space), message="the pods go with it")


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

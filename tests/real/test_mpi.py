"""LAMMPS over four pods, one rank each: a real MPI program that works only when the whole gang is there."""

from pathlib import Path

from cluster.patience import until

from .test_gangs import condition, job, phases, pods, submit

RANK = """
/usr/sbin/sshd -D -e &
if [ "$JOB_COMPLETION_INDEX" != 0 ]; then
	until [ -e /tmp/done ]; do sleep 0.2; done
	exit 0
fi
until [ -e /tmp/hosts ]; do sleep 0.2; done
mpirun --allow-run-as-root --bind-to none --mca mpi_yield_when_idle 1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \\
	--hostfile /tmp/hosts -np 4 lmp -in /tmp/melt.in -log none || exit 1
for host in $(cut -d' ' -f1 /tmp/hosts); do ssh "$host" touch /tmp/done; done
"""


def test_lammps_over_four_pods(real, sluiced, space):
    submit(real, space, job("lammps", 4, RANK, image="localhost/mpi:1"))
    until(lambda: phases(real, space, "lammps") == ["Running"] * 4)
    there = sorted(pods(real, space, "lammps"), key=lambda p: p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])
    hosts = "".join(f"{p['status']['podIP']} slots=1\n" for p in there)
    first = there[0]["metadata"]["name"]
    melt = Path(__file__).with_name("melt.in").read_text()
    real.kubectl("exec", "-n", space, first, "--", "sh", "-c",
                 f"printf '{melt}' >/tmp/melt.in && printf '{hosts}' >/tmp/h && mv /tmp/h /tmp/hosts")
    try:
        until(lambda: condition(real, space, "lammps", "Complete") or condition(real, space, "lammps", "Failed"), 600)
    finally:
        log = real.kubectl("logs", "-n", space, first)
        print(log)
    assert condition(real, space, "lammps", "Complete"), log[-2000:]
    assert "on 4 procs for 100 steps with 4000 atoms" in log

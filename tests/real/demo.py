"""make demo REAL=1: LAMMPS over MPI on four real nodes, two runs of three pods at once, through the default scheduler and through Sluice."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster.patience import until  # noqa: E402
from cluster.real import RealCluster, programs  # noqa: E402
from e2e.daemon import Sluiced  # noqa: E402
from real import mpi  # noqa: E402

NAMES = ("melt-a", "melt-b")
CLOGGED_S = 15


def say(text):
    print(f"demo: {text}", flush=True)


def submit(cluster, space, scheduler):
    """The pods of both runs arrive in turns."""
    for pair in zip(*(mpi.pods(n, 3, space, scheduler) for n in NAMES)):
        for p in pair:
            cluster.admin.create(p)
    return time.monotonic()


def default(cluster, space):
    submit(cluster, space, None)
    until(lambda: sum(mpi.phases(cluster, space, n).count("Running") for n in NAMES) == 4)
    time.sleep(CLOGGED_S)
    for n in NAMES:
        say(f"default scheduler: {n} has {mpi.phases(cluster, space, n).count('Running')} of 3 pods after {CLOGGED_S} s, and will never have more")
    cluster.admin.delete_all("pods", space, grace=0)
    until(lambda: not cluster.admin.list("pods", space))


def sluice(cluster, space):
    with Sluiced(cluster):
        begun, ended, begin = set(), set(), submit(cluster, space, "sluice")
        while len(ended) < len(NAMES):
            for n in NAMES:
                now = mpi.phases(cluster, space, n)
                if now == ["Running"] * 3 and n not in begun:
                    say(f"Sluice: {n} starts as a whole after {time.monotonic() - begin:.0f} s")
                    mpi.begin(cluster, space, mpi.members(cluster, space, n))
                    begun.add(n)
                if now == ["Succeeded"] * 3 and n not in ended:
                    log = cluster.kubectl("logs", "-n", space, f"{n}-0")
                    loop = next((line for line in log.splitlines() if line.startswith("Loop time")), "")
                    say(f"Sluice: {n} is done after {time.monotonic() - begin:.0f} s: {loop}")
                    ended.add(n)
                if "Failed" in now:
                    sys.exit(f"demo: {n} failed:\n{cluster.kubectl('logs', '-n', space, f'{n}-0')[-2000:]}")
            time.sleep(0.2)


def main():
    image = programs("mpi") / "mpi.tar"
    say("four real nodes: kubelets, containerd, an image with OpenMPI and LAMMPS (a minute)")
    with RealCluster("demo-real", real=4, images=[image]) as cluster:
        space = cluster.namespace("mpi")
        default(cluster, space)
        sluice(cluster, space)


main()

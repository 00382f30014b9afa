"""Matches and cancels in any order, a restart in between: the service answers as sluice-query does on the same graph."""

import json
import os
import pty
import random
import re
import subprocess
import threading
from pathlib import Path

import grpc
import pytest

from rpc.alone import ROOT, Alone, Client, jgf, jobspec, program

GRAPHS = {
    "flat": (jgf(nodes=6, cores=3), "jgf"),
    "gpus": (jgf(nodes=3, cores=4, gpus=2), "jgf"),
    "wide": (jgf(nodes=24, cores=2, memory=1), "jgf"),
}
# The corpus of Fluxion's answers lies beside the repository, where it does; tests/conformance is strict about that.
CORPUS = Path(os.environ.get("SLUICE_CONFORMANCE", ROOT.parent / "shared" / "conformance")) / "t" / "data" / "resource"
# Every file there that is a graph by itself; fragments of R that commands take (rv1exec/cancel) are graphs, too.
FRAGMENTS = {"node-1-partial-cancel", "node-1-partial-cancel-invalid", "rank1_cancel_invalid"}
GRAPHS |= {f"{kind}-{file.stem}": (file.read_text(), kind)
           for kind, pattern in (("grug", "grugs/**/*.graphml"), ("jgf", "jgfs/**/*.json"), ("rv1exec", "rv1exec/**/*.json"))
           for file in sorted(CORPUS.glob(pattern)) if file.stem not in FRAGMENTS}
JOBSPECS = [file.read_text() for file in sorted(CORPUS.glob("jobspecs/basics/*.yaml"))]
MATCHER_ERROR = r"\[Fluxion\] Error in ReapiCliMatchAllocate: (.*must be a resource type known to fluxion|no time was found at which the request fits)"


def jobs(rng):
    if JOBSPECS and rng.random() < 0.3:
        return rng.choice(JOBSPECS)
    kinds = [{"type": "core", "count": rng.randint(1, 3)}]
    if rng.random() < 0.3:
        kinds.append({"type": "gpu", "count": 1})
    spec = json.loads(jobspec(rng.randint(1, 4), 1, rng.choice([0, 60, 3600])))
    spec["resources"][0]["with"] = kinds
    if rng.random() < 0.3:
        spec["resources"] = [{"type": "node", "count": rng.randint(1, 2), "with": [dict(spec["resources"][0], count=1)]}]
    return json.dumps(spec)


class Query:
    """What sluice-query is asked in one life of the service, and its answers."""

    def __init__(self, graph, load, policy, folder):
        self.folder, self.script = folder, []
        (folder / "graph").write_text(graph)
        self.args = [str(program("sluice-query")), "-L", str(folder / "graph"), "-f", load, "-P", policy, "-F", "jgf"]

    def match(self, spec, reserve):
        file = self.folder / f"{len(self.script)}.yaml"
        file.write_text(spec)
        self.script.append(f"match {'allocate_orelse_reserve' if reserve else 'allocate'} {file}")

    def cancel(self, job):
        self.script.append(f"cancel {job}")

    def run(self):
        """[(allocation or None, "ALLOCATED"/"RESERVED"/None, start)] of the matches."""
        # On a pipe sluice-query has the reference's slip of calling some "no room" an error, without a number; on a terminal it has not.
        typed, terminal = pty.openpty()
        with subprocess.Popen(self.args, stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
            os.close(terminal)
            writer = threading.Thread(target=lambda: os.write(typed, "\n".join([*self.script, "quit", ""]).encode()))
            writer.start()
            out = p.stdout.read()
            writer.join()
        os.close(typed)
        assert p.returncode == 0
        answers, graph = [], None
        for line in out.splitlines():
            if line.startswith('{"graph"'):
                graph = line + "\n"
            elif line.startswith("INFO: No matching resources found"):
                answers.append([None, None, None])
            elif line.startswith("INFO: RESOURCES="):
                answers.append([graph, line.split("=")[1]])
            elif line.startswith("INFO: SCHEDULED AT="):
                answers[-1].append(int(line.split("=")[1].replace("Now", "0")))
        return [tuple(a) for a in answers]


@pytest.mark.parametrize("name", GRAPHS)
def test_the_service_agrees_with_sluice_query(name, tmp_path):
    """Matches, reservations, cancels and restarts in any order; a service that starts again begins with a graph where everything is free."""
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    graph, load = GRAPHS[name]
    policy = rng.choice(["first", "lonode", "high", "low", "hinode", "lonodex"])
    print("seed", seed, "policy", policy)
    query, told, live = Query(graph, load, policy, tmp_path), [], []
    with Alone("--policy", policy, graph=graph) as d:
        f = Client(d.channel(), "fluxion")
        for step in range(100):
            if rng.random() < 0.02 or step == 50:
                assert told == query.run()
                query.script.clear()
                told.clear(), live.clear()
                d.stop()
                d.start()
            elif live and rng.random() < 0.4:
                job = live.pop(rng.randrange(len(live)))
                f.Cancel(jobID=job, timeout=60, wait=True)
                query.cancel(job)
            else:
                spec, reserve = jobs(rng), rng.random() < 0.3
                query.match(spec, reserve)
                try:
                    a = f.Match(jobspec=spec, request="allocate", reservation=reserve, timeout=60, wait=True)
                    live.append(a.jobid)
                    told.append((a.allocation, "RESERVED" if a.reserved else "ALLOCATED", a.at))
                except grpc.RpcError as e:
                    # sluice-query says "no matching resources" of the matcher's errors, too: a type that the graph does not have, no time at all
                    assert e.details() == "Allocation was not possible" or re.fullmatch(MATCHER_ERROR, e.details()), e.details()
                    told.append((None, None, None))
        assert told == query.run()


def test_a_restart_begins_with_an_empty_graph():
    with Alone(graph=GRAPHS["flat"][0]) as d:
        f = Client(d.channel(), "fluxion")
        first = f.Match(jobspec=jobspec(18), request="allocate").allocation
        d.stop()
        d.start()
        again = f.Match(jobspec=jobspec(18), request="allocate", wait=True)
        assert (again.jobid, again.allocation) == (1, first)

"""Matches and cancels in any order, a restart in between: the service answers as sluice-query does on the same graph."""

import json
import random
import subprocess

import grpc
import pytest

from rpc.alone import Alone, Client, jgf, jobspec, program

GRAPHS = {
    "flat": jgf(nodes=6, cores=3),
    "gpus": jgf(nodes=3, cores=4, gpus=2),
    "wide": jgf(nodes=24, cores=2, memory=1),
}


def jobs(rng):
    kinds = [{"type": "core", "count": rng.randint(1, 3)}]
    if rng.random() < 0.3:
        kinds.append({"type": "gpu", "count": 1})
    spec = json.loads(jobspec(rng.randint(1, 4), 1, rng.choice([0, 60, 3600])))
    spec["resources"][0]["with"] = kinds
    if rng.random() < 0.3:
        spec["resources"] = [{"type": "node", "count": rng.randint(1, 2), "with": [dict(spec["resources"][0], count=1)]}]
    return json.dumps(spec)


class Query:
    """sluice-query as a process; each question ends where its prompt comes back."""

    def __init__(self, graph, policy, folder):
        self.folder, self.n = folder, 0
        (folder / "graph.json").write_text(graph)
        self.script = []
        self.args = [str(program("sluice-query")), "-L", str(folder / "graph.json"), "-f", "jgf", "-P", policy, "-F", "jgf"]

    def match(self, spec, reserve):
        self.n += 1
        (self.folder / f"{self.n}.json").write_text(spec)
        self.script.append(f"match {'allocate_orelse_reserve' if reserve else 'allocate'} {self.folder / f'{self.n}.json'}")

    def cancel(self, job):
        self.script.append(f"cancel {job}")

    def run(self):
        """[(allocation or None, "ALLOCATED"/"RESERVED"/None, start)] of the matches."""
        out = subprocess.run(self.args, input="\n".join(self.script + ["quit", ""]), capture_output=True, text=True, timeout=60, check=True).stdout
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
@pytest.mark.parametrize("policy", ["first", "lonode", "high"])
def test_the_service_agrees_with_sluice_query(name, policy, tmp_path):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    query, told = Query(GRAPHS[name], policy, tmp_path), []
    with Alone("--policy", policy, graph=GRAPHS[name]) as d:
        f, live = Client(d.channel(), "fluxion"), []
        for _ in range(120):
            if live and rng.random() < 0.4:
                job = live.pop(rng.randrange(len(live)))
                f.Cancel(jobID=job)
                query.cancel(job)
                continue
            spec, reserve = jobs(rng), rng.random() < 0.3
            query.match(spec, reserve)
            try:
                a = f.Match(jobspec=spec, request="allocate", reservation=reserve)
                live.append(a.jobid)
                told.append((a.allocation, "RESERVED" if a.reserved else "ALLOCATED", a.at))
            except grpc.RpcError as e:
                assert e.details() == "Allocation was not possible"
                told.append((None, None, None))
    assert told == query.run()


def test_a_restart_begins_with_an_empty_graph():
    with Alone(graph=GRAPHS["flat"]) as d:
        f = Client(d.channel(), "fluxion")
        first = f.Match(jobspec=jobspec(18), request="allocate").allocation
        d.stop()
        d.start()
        again = f.Match(jobspec=jobspec(18), request="allocate", wait=True)
        assert (again.jobid, again.allocation) == (1, first)

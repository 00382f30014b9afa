"""The Fluxion services in a cluster: a match is an allocation that gangs, people and restarts see."""

import base64
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from cluster import work
from cluster.ports import free_ports
from rpc.alone import Client, cores_of, jobspec, nodes_of

from .conftest import crds, until
from .daemon import Sluiced

CLUSTER = {"node_list": [{"name": "node", "count": 4, "cpu": 4}]}
SPACE = "fluxion.grpc"


@pytest.fixture(scope="module")
def sluiced(module_cluster, tmp_path_factory):
    crds(module_cluster)
    folder, port = tmp_path_factory.mktemp("grpc"), free_ports(1)[0]
    with Sluiced(module_cluster, store=str(folder / "s.db"), folder=folder, args=["--port", str(port), "--external-service"]) as d:
        d.port = port
        yield d
        if d.process.poll() is not None:
            pytest.fail(f"sluiced ended by itself:\n{d.tail(40)}")


@pytest.fixture
def client(sluiced):
    with grpc.insecure_channel(f"127.0.0.1:{sluiced.port}", options=[("grpc.use_local_subchannel_pool", 1)]) as ch:
        yield lambda name, folder="": Client(ch, name, folder)
        f = Client(ch, "fluxion")
        for j in sluiced.jobs(SPACE).values():
            f.Cancel(jobID=int(j["name"].rsplit("-", 1)[1]))
        until(lambda: not sluiced.jobs(SPACE), message="no matches left")


def refused(call, **kw):
    with pytest.raises(grpc.RpcError) as e:
        call(**kw)
    return e.value.code(), e.value.details()


def test_a_match_takes_room_that_jobs_shows_and_cancel_gives_back(sluiced, client):
    f = client("fluxion")
    a = f.Match(jobspec=jobspec(4, 2), request="allocate", timeout=1)
    assert not a.reserved and a.at == 0 and len(cores_of(a.allocation)) == 8
    job = sluiced.jobs(SPACE)[f"match-{a.jobid}"]
    assert job["state"] == "running" and job["size"] == 4
    assert f.Match(jobspec=jobspec(4, 2), request="allocate", timeout=1).jobid != a.jobid
    assert refused(f.Match, jobspec=jobspec(1, 1), request="allocate", timeout=1) == (grpc.StatusCode.UNKNOWN, "Allocation was not possible")
    assert f.Cancel(jobID=a.jobid).status == 0
    assert len(nodes_of(f.Match(jobspec=jobspec(2, 4), request="allocate", timeout=1).allocation)) == 2
    assert f.Cancel(jobID=12345).status == 0


def test_pods_and_matches_see_each_other(sluiced, client, module_cluster, space):
    f = client("fluxion")
    taken = f.Match(jobspec=jobspec(3, 4), request="allocate", timeout=1)
    module_cluster.admin.create(work.job("gang", 2, namespace=space, scheduler="sluice", cpu=4, run=600))
    until(lambda: sluiced.jobs(space).get("gang", {}).get("state") == "waiting", message="the gang waits: one node is free")
    f.Cancel(jobID=taken.jobid)
    until(lambda: sluiced.jobs(space).get("gang", {}).get("state") == "running", message="the gang runs")
    assert refused(f.Match, jobspec=jobspec(3, 4), request="allocate", timeout=1)[1] == "Allocation was not possible"
    assert len(nodes_of(f.Match(jobspec=jobspec(2, 4), request="allocate", timeout=1).allocation)) == 2


def test_a_reservation_is_a_promise_and_starts(sluiced, client):
    f = client("fluxion")
    first = f.Match(jobspec=jobspec(4, 4, duration=4), request="allocate", timeout=1)
    later = f.Match(jobspec=jobspec(4, 4, duration=60), request="allocate", reservation=True, timeout=1)
    assert later.reserved and 0 <= later.at - time.time() <= 5 and len(nodes_of(later.allocation)) == 4
    assert sluiced.jobs(SPACE)[f"match-{later.jobid}"]["state"] == "waiting"
    # the duration of the first ends it, and the second starts when it was promised to
    until(lambda: sluiced.jobs(SPACE).get(f"match-{later.jobid}", {}).get("state") == "running", message="the reservation starts")
    assert abs(time.time() - later.at) < 3 and f"match-{first.jobid}" not in sluiced.jobs(SPACE)


def test_matches_survive_a_kill(sluiced, client):
    f = client("fluxion")
    a = f.Match(jobspec=jobspec(2, 4, duration=3600), request="allocate", timeout=1)
    b = f.Match(jobspec=jobspec(4, 4, duration=3600), request="allocate", reservation=True, timeout=1)
    was = sluiced.jobs(SPACE)
    sluiced.kill()
    sluiced.start()
    now = until(lambda: len(j := sluiced.jobs(SPACE)) == 2 and j, message="both are there again")
    assert now[f"match-{a.jobid}"]["state"] == "running" and now[f"match-{b.jobid}"]["state"] == "waiting"
    assert now[f"match-{a.jobid}"]["start"] == was[f"match-{a.jobid}"]["start"]
    assert refused(f.Match, jobspec=jobspec(3, 4), request="allocate", wait=True)[1] == "Allocation was not possible"
    f.Cancel(jobID=a.jobid)
    until(lambda: sluiced.jobs(SPACE)[f"match-{b.jobid}"]["state"] == "running", message="the promise is kept")


def test_the_other_services(sluiced, client):
    c, n, e = client("fluxcli"), client("fluxion", "fluxnetes"), client("service")
    a = c.Match(ps={"id": "team/solver", "cpu": 2}, request="allocate", count=3, timeout=1)
    assert a.podID == "team/solver" and sum(x.tasks for x in a.nodelist) == 3 and a.nodelist[0].nodeID.startswith("node")
    b = n.Match(podspec={"cpu": 4}, count=1, jobName="other", timeout=1)
    assert b.allocated and [x.tasks for x in b.nodelist] == [1]
    assert not n.Match(podspec={"cpu": 4}, count=4, jobName="none", timeout=1).allocated
    until(lambda: len(sluiced.jobs(SPACE)) == 2, message="two matches")
    graph = json.loads(e.GetResources().graph)["graph"]["nodes"]
    assert sum(v["metadata"]["type"] == "core" for v in graph) == 16 - 6 - 4
    assert e.GetGroup(group=f"{SPACE}/team-solver-{a.jobID}").size == 3
    assert e.ListGroups().size == 2
    assert client("fluxion").Init(policy="lonode", jgf="{}").status == 0
    assert refused(client("fluxion").Grow, jgf="{}")[0] == grpc.StatusCode.FAILED_PRECONDITION
    assert c.Cancel(jobID=a.jobID).error == 0 and n.Cancel(fluxID=b.fluxID).error == 0
    assert refused(n.Cancel, fluxID=b.fluxID)[0] == grpc.StatusCode.UNKNOWN


def test_what_the_cluster_does_not_have_is_named(sluiced, client):
    code, why = refused(client("fluxion").Match, jobspec=json.dumps({
        "version": 9999, "resources": [{"type": "slot", "count": 1, "label": "d", "with": [{"type": "storage", "count": 1}]}],
        "tasks": [{"command": ["a"], "slot": "d", "count": {"per_slot": 1}}], "attributes": {}}), request="allocate", timeout=1)
    assert code == grpc.StatusCode.UNKNOWN and why.startswith("[Fluxion] Error in ReapiCliMatchAllocate: ") and "must be a resource type known" in why


def test_on_other_addresses_a_token_decides(module_cluster, tmp_path):
    port = free_ports(1)[0]
    with Sluiced(module_cluster, folder=tmp_path, config={"grpc": {"host": "0.0.0.0", "port": port}}) as d:
        until(lambda: d.log.read_text().count("the certificate in its Secret") == 2, message="both TLS ports have the certificate of the Secret")
        ca = base64.b64decode(module_cluster.admin.get("secrets", "sluice-https", "sluice-system")["data"]["ca.crt"])
        with grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(ca)) as ch:
            f = Client(ch, "fluxion")

            def match(user):
                token = (module_cluster.folder / "pki" / f"{user}.token").read_text().strip() if user else "nonsense"
                return lambda: f.Match(jobspec=jobspec(1, 1), request="allocate", metadata=[("authorization", f"Bearer {token}")])

            assert refused(f.Match, jobspec=jobspec(1, 1), request="allocate") == (
                grpc.StatusCode.UNAUTHENTICATED,
                "a client certificate of grpc.clientCA is needed, or a Kubernetes token in the metadata: authorization: Bearer ...")
            assert refused(match(None)) == (grpc.StatusCode.UNAUTHENTICATED, "the token is not valid in this cluster")
            code, why = refused(match("sluice"))
            assert code == grpc.StatusCode.PERMISSION_DENIED and 'nonResourceURLs "/fluxion.FluxionService/Match" and verb "post"' in why
            assert match("admin")().jobid > 0


def _rss_mb(d):
    return int(next(line for line in Path(f"/proc/{d.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def test_gangs_start_as_ever_beside_clients_that_mean_no_good(sluiced, client, module_cluster, space):
    def start(name):
        began = time.monotonic()
        module_cluster.admin.create(work.job(name, 2, namespace=space, scheduler="sluice", cpu=1, run=2))
        until(lambda: sluiced.jobs(space).get(name, {}).get("state") in ("running", "completed"), message=f"{name} runs")
        return time.monotonic() - began

    quiet, before = [start(f"quiet{i}") for i in range(3)], _rss_mb(sluiced)
    attack = subprocess.Popen([sys.executable, "-m", "rpc.attack", str(sluiced.port), "10000"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])})
    try:
        took, most = [], 0
        while attack.poll() is None or len(took) < 3:
            took.append(start(f"beside{len(took)}"))
            most = max(most, _rss_mb(sluiced))
            assert len(took) < 500
        done = json.loads(attack.communicate()[0])
    finally:
        attack.kill()
        attack.wait()
    print(f"gangs ran after {max(quiet):.2f} s at most, beside {done} after {max(took):.2f} s; memory {before} MB, then {most} MB at most")
    assert done["crowd"] >= 10000 and all(done.values()), done
    assert sorted(took)[len(took) // 2] < 10 * max(quiet) + 5
    assert most - before < 600
    # A client that means well is served as soon as the gangs have left it room.
    until(lambda: all(j["state"] == "completed" for j in sluiced.jobs(space).values()), message="the gangs have ended")
    f = client("fluxion")
    f.Cancel(jobID=f.Match(jobspec=jobspec(1, 1), request="allocate", timeout=30).jobid)

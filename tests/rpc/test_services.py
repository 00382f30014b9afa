"""The services of Fluence, Fluxnetes and Fluxion with the official Python client."""

import json

import grpc
import pytest
from google.protobuf import descriptor_pb2

from rpc.alone import Alone, Client, _files, cores_of, jgf, jobspec, nodes_of


@pytest.fixture()
def alone():
    with Alone("--external-service", "--policy", "lonode", graph=jgf()) as d:
        yield d


def fails(code, text, call, *args, **kw):
    with pytest.raises(grpc.RpcError) as e:
        call(*args, **kw)
    assert (e.value.code(), e.value.details()) == (code, text)


# ---- fluxion.FluxionService, dialect F ----


def test_a_match_names_vertices_children_first_and_counts_jobs_from_one(alone):
    f = Client(alone.channel(), "fluxion")
    a = f.Match(jobspec=jobspec(2, 2), request="allocate", timeout=1)
    assert (a.jobid, a.reserved, a.at, a.status) == (1, False, 0, 0) and 0 < a.overhead < 1
    assert a.allocation.endswith("\n") and a.allocation.count("\n") == 1
    assert [v["metadata"]["type"] for v in json.loads(a.allocation)["graph"]["nodes"]] == ["core"] * 4 + ["node", "cluster"]
    assert nodes_of(a.allocation) == ["worker-0x"]
    assert f.Match(jobspec=jobspec(), request="allocate").jobid == 2


def test_no_room_is_the_originals_error_and_cancel_makes_room(alone):
    f = Client(alone.channel(), "fluxion")
    assert f.Match(jobspec=jobspec(16), request="allocate").jobid == 1
    fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", f.Match, jobspec=jobspec(), request="allocate")
    done = f.Cancel(jobID=1)
    assert (done.jobID, done.error, done.status) == (0, 0, 0)
    assert len(cores_of(f.Match(jobspec=jobspec(16), request="allocate").allocation)) == 16


def test_a_job_that_is_not_there_is_cancelled_with_success(alone):
    assert Client(alone.channel(), "fluxion").Cancel(jobID=99).status == 0


def test_a_reservation_says_when_and_still_carries_an_allocation(alone):
    f = Client(alone.channel(), "fluxion")
    f.Match(jobspec=jobspec(16, duration=3600), request="allocate")
    later = f.Match(jobspec=jobspec(4), request="allocate", reservation=True)
    assert (later.reserved, later.at, later.jobid) == (True, 3600, 2) and nodes_of(later.allocation) == ["worker-0x"]


def test_count_in_field_3_of_the_old_client_does_not_keep_a_job_from_starting_now(alone):
    f = Client(alone.channel(), "fluxion")
    # jobspec = 1, request = 2, count (int32) = 3: what the Python SDK of before 2025 sends
    text = jobspec().encode()
    old = b"\x0a" + bytes([len(text) & 0x7f | 0x80, len(text) >> 7]) + text + b"\x12\x08allocate\x18\x01"
    raw = alone.channel().unary_unary("/fluxion.FluxionService/Match")(old, timeout=1)
    assert b'"graph"' in raw
    assert f.Match(jobspec=jobspec(), request="allocate").jobid == 2


def test_init_replaces_the_graph_and_forgets_jobs(alone):
    f = Client(alone.channel(), "fluxion")
    f.Match(jobspec=jobspec(16), request="allocate")
    assert f.Init(policy="lonode", jgf=jgf(nodes=1)).status == 0
    a = f.Match(jobspec=jobspec(4), request="allocate")
    assert a.jobid == 1 and len(cores_of(a.allocation)) == 4


def test_a_graph_that_cannot_be_read_leaves_the_old_one(alone):
    f = Client(alone.channel(), "fluxion")
    with pytest.raises(grpc.RpcError) as e:
        f.Init(jgf="{")
    assert e.value.code() == grpc.StatusCode.UNKNOWN and e.value.details().startswith("issue initializing resource api client -1: ")
    fails(grpc.StatusCode.UNKNOWN, 'issue initializing resource api client -1: there is no policy "best"', f.Init, policy="best", jgf=jgf())
    assert f.Match(jobspec=jobspec(16), request="allocate").jobid == 1


def test_without_a_graph_a_match_says_what_to_do():
    with Alone() as d:
        f = Client(d.channel(), "fluxion")
        fails(grpc.StatusCode.FAILED_PRECONDITION, "there is no graph yet: call Init, or start with --graph", f.Match, jobspec=jobspec(), request="allocate")
        assert f.Init(jgf=jgf()).status == 0
        assert f.Match(jobspec=jobspec(), request="allocate").jobid == 1


def test_a_bad_jobspec_is_named(alone):
    f = Client(alone.channel(), "fluxion")
    with pytest.raises(grpc.RpcError) as e:
        f.Match(jobspec="version: 1\nresources: 7\n", request="allocate")
    assert e.value.code() == grpc.StatusCode.UNKNOWN
    assert e.value.details().startswith("[Fluxion] Error in ReapiCliMatchAllocate: ")
    fails(grpc.StatusCode.INVALID_ARGUMENT, "MatchRequest.jobspec is empty", f.Match, request="allocate")


def test_grow_and_shrink(alone):
    f = Client(alone.channel(), "fluxion")
    fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", f.Match, jobspec=jobspec(17), request="allocate")
    assert f.Grow(jgf=jgf(nodes=1, first=4)).status == 0
    assert len(cores_of(f.Match(jobspec=jobspec(20), request="allocate").allocation)) == 20
    f.Cancel(jobID=2)
    assert f.Shrink(nodepaths=["/k8scluster0/worker-0x0", "/k8scluster0/worker-1x1"]).status == 0
    fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", f.Match, jobspec=jobspec(13), request="allocate")
    with pytest.raises(grpc.RpcError) as e:
        f.Shrink(nodepaths=["/nowhere"])
    assert e.value.details().startswith("issue resource api client shrink -1: ")


def test_shrink_of_a_graph_with_edges_in_both_directions():
    """A node is removed with what is below it; the edge to its parent does not lead to the rest of the graph."""
    with Alone("--policy", "lonode", graph=jgf(both=True)) as d:
        f = Client(d.channel(), "fluxion")
        job = f.Match(jobspec=jobspec(5), request="allocate").jobid
        assert f.Shrink(nodepaths=["/k8scluster0/worker-3x3"]).status == 0
        fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", f.Match, jobspec=jobspec(8), request="allocate")
        assert len(cores_of(f.Match(jobspec=jobspec(7), request="allocate").allocation)) == 7
        with pytest.raises(grpc.RpcError) as e:
            f.Shrink(nodepaths=["/k8scluster0"])
        assert e.value.details().startswith("issue resource api client shrink -1: ")
        f.Cancel(jobID=job)
        assert f.Grow(jgf=jgf(both=True)).status == 0  # the node comes back
        assert len(cores_of(f.Match(jobspec=jobspec(9), request="allocate").allocation)) == 9


# ---- fluxion.FluxionService, dialect N ----


def test_dialect_n_on_the_same_port(alone):
    n = Client(alone.channel(), "fluxion", "fluxnetes")
    a = n.Match(podspec={"id": "team/app", "cpu": 2}, count=3, jobName="app")
    assert (a.fluxID, a.allocated, a.reserved, a.reserved_at) == (1, True, False, 0)
    assert [(x.nodeID, x.tasks) for x in a.nodelist] == [("worker-0x", 2), ("worker-1x", 1)]
    none = n.Match(podspec={"id": "team/app", "cpu": 2}, count=30, jobName="app")
    assert (none.fluxID, none.allocated, none.reserved, list(none.nodelist)) == (0, False, False, [])
    full = n.Match(podspec={"cpu": 1}, count=10, jobName="rest")
    assert full.allocated
    later = n.Match(podspec={"cpu": 4}, count=1, reserve=True, jobName="later")
    assert (later.allocated, later.reserved, later.reserved_at) == (False, True, 3600)
    assert n.Cancel(fluxID=1).fluxID == 1
    fails(grpc.StatusCode.UNKNOWN, "issue resource api client cancel -1: there is no job 1", n.Cancel, fluxID=1)
    assert n.Cancel(fluxID=1, NoExistOK=True).error == 0


def test_dialect_n_is_recognised_by_the_pod_alone(alone):
    a = Client(alone.channel(), "fluxion", "fluxnetes").Match(podspec={"cpu": 1}, count=1)
    assert a.allocated and a.fluxID == 1


# ---- fluxcli.FluxcliService ----


def test_fluxcli(alone):
    c = Client(alone.channel(), "fluxcli")
    a = c.Match(ps={"id": "team/solver", "cpu": 2}, request="allocate", count=4)
    assert (a.podID, a.jobID) == ("team/solver", 1)
    assert [(x.nodeID, x.tasks) for x in a.nodelist] == [("worker-0x", 2), ("worker-1x", 2)]
    fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", c.Match, ps={"cpu": 5000}, count=1)
    fails(grpc.StatusCode.INVALID_ARGUMENT, "PodSpec.cpu is 0; a pod needs at least 1", c.Match, count=1)
    fails(grpc.StatusCode.INVALID_ARGUMENT, "MatchRequest.count is 0; it must be at least 1", c.Match, ps={"cpu": 1})
    done = c.Cancel(jobID=1)
    assert (done.jobID, done.error) == (1, 0)
    assert c.Cancel(jobID=12345).jobID == 12345


def test_memory_and_gpus_are_matched():
    with Alone("--policy", "lonode", graph=jgf(nodes=2, cores=4, gpus=1, memory=4)) as d:
        c = Client(d.channel(), "fluxcli")
        a = c.Match(ps={"cpu": 1, "gpu": 1, "memory": 1 << 30}, count=2)
        assert [(x.nodeID, x.tasks) for x in a.nodelist] == [("worker-0x", 1), ("worker-1x", 1)]
        fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", c.Match, ps={"cpu": 1, "gpu": 1}, count=1)
        for node in ("worker-0x", "worker-1x"):
            assert [x.nodeID for x in c.Match(ps={"cpu": 1, "memory": 3 << 30}, count=1).nodelist] == [node]
        fails(grpc.StatusCode.UNKNOWN, "Allocation was not possible", c.Match, ps={"cpu": 1, "memory": 1 << 30}, count=1)


# ---- service.ExternalPluginService ----


def test_the_graph_comes_back_and_can_be_loaded_again(alone):
    ch = alone.channel()
    e, f = Client(ch, "service"), Client(ch, "fluxion")
    graph = e.GetResources().graph
    kinds = [v["metadata"]["type"] for v in json.loads(graph)["graph"]["nodes"]]
    assert (kinds.count("node"), kinds.count("core"), kinds.count("cluster")) == (4, 16, 1)
    assert f.Init(policy="lonode", jgf=graph).status == 0
    assert len(cores_of(f.Match(jobspec=jobspec(16), request="allocate").allocation)) == 16


def test_groups(alone):
    ch = alone.channel()
    e = Client(ch, "service")
    Client(ch, "fluxcli").Match(ps={"id": "team/solver", "cpu": 1}, count=3)
    Client(ch, "fluxion").Match(jobspec=jobspec(), request="allocate")
    one = e.GetGroup(group="team/solver")
    assert (one.name, one.size) == ("team/solver", 3)
    every = e.ListGroups()
    assert (every.name, every.size) == ("team/solver\njob-2", 2)
    fails(grpc.StatusCode.NOT_FOUND, 'there is no group "team/other"', e.GetGroup, group="team/other")


def test_without_the_option_there_is_no_external_service():
    with Alone(graph=jgf()) as d:
        fails(grpc.StatusCode.UNIMPLEMENTED, "there is no method /service.ExternalPluginService/GetResources", Client(d.channel(), "service").GetResources)


# ---- health and reflection ----

REFLECTION = ["grpc.reflection.v1", "grpc.reflection.v1alpha"]


def ask(alone, package, *questions):
    """Raw messages of a reflection stream; each question is one field of ServerReflectionRequest."""
    call = alone.channel().stream_stream(f"/{package}.ServerReflection/ServerReflectionInfo")
    return list(call(iter(questions), timeout=5))


@pytest.mark.parametrize("package", REFLECTION)
def test_reflection_tells_what_the_proto_files_say(alone, package):
    answer = ask(alone, package, b"\x3a\x00")[0]
    for name in (b"fluxcli.FluxcliService", b"fluxion.FluxionService", b"service.ExternalPluginService", b"grpc.health.v1.Health", package.encode()):
        assert name in answer
    for name in ("fluxcli", "fluxion", "service"):
        told = ask(alone, package, b"\x1a" + bytes([len(name) + 6]) + name.encode() + b".proto")[0]
        # ServerReflectionResponse.file_descriptor_response = 4 { file_descriptor_proto = 1 }
        at = told.index(b"\n" + bytes([len(name) + 6]) + name.encode() + b".proto")
        found = descriptor_pb2.FileDescriptorProto.FromString(told[at:])
        want = _files(f"{name}.proto", "").file[0]
        want.ClearField("options")
        for m in want.message_type:
            for f in m.field:
                f.ClearField("json_name")
        found.message_type.sort(key=lambda m: m.name)
        want.message_type.sort(key=lambda m: m.name)
        assert found == want


def test_reflection_by_symbol_and_its_refusal(alone):
    sym = b"fluxion.FluxionService.Match"
    assert b"fluxion.proto" in ask(alone, REFLECTION[0], b"\x22" + bytes([len(sym)]) + sym)[0]
    assert b"there is no such symbol" in ask(alone, REFLECTION[0], b"\x22\x03abc")[0]


def test_health(alone):
    check = alone.channel().unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"", timeout=5) == b"\x08\x01"
    assert check(b"\x0a\x16fluxion.FluxionService", timeout=5) == b"\x08\x01"
    fails(grpc.StatusCode.NOT_FOUND, 'there is no service "other"', check, b"\x0a\x05other", timeout=5)
    watch = alone.channel().unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=30)
    assert next(watch) == b"\x08\x01"
    alone.process.terminate()
    assert next(watch) == b"\x08\x02"  # it says so before it stops
    watch.cancel()
    alone.process.wait(30)
    alone.process.send_signal = lambda sig: None

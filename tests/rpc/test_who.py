"""Which callers may call: all on the machine's own address, and those with a client certificate elsewhere."""

import subprocess

import grpc
import pytest

from rpc.alone import Alone, Client, jgf, jobspec, program


@pytest.fixture(scope="module")
def pki(tmp_path_factory):
    """An authority, a server named localhost, a client; and an authority that the server does not trust, with its
    client."""
    folder = tmp_path_factory.mktemp("pki")

    def run(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    for ca, leaves in (("ca", ("server", "client")), ("other", ("stranger",))):
        run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={ca}", "-days", "2",
            "-keyout", f"{ca}.key", "-out", f"{ca}.crt")
        for name in leaves:
            (folder / "ext").write_text("subjectAltName=DNS:localhost\n")
            run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
            run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2", "-extfile", "ext",
                "-out", f"{name}.crt")
    return folder


@pytest.fixture
def alone(pki, tmp_path):
    (tmp_path / "s.yaml").write_text(f"serve: {{certificate: {pki}/server.crt, key: {pki}/server.key}}\ngrpc: {{clientCA: {pki}/ca.crt}}\n")
    with Alone("--host", "0.0.0.0", "--config", str(tmp_path / "s.yaml"), graph=jgf()) as d:
        yield d


def channel(d, pki, client=None):
    read = lambda name: (pki / name).read_bytes()  # noqa: E731
    own = (read(f"{client}.key"), read(f"{client}.crt")) if client else (None, None)
    return grpc.secure_channel(f"localhost:{d.port}", grpc.ssl_channel_credentials(read("ca.crt"), *own))


def test_a_certificate_of_the_authority_may(alone, pki):
    assert Client(channel(alone, pki, "client"), "fluxion").Match(jobspec=jobspec(), request="allocate").jobid == 1


def test_without_one_the_sentence_says_what_is_needed(alone, pki):
    with pytest.raises(grpc.RpcError) as e:
        Client(channel(alone, pki), "fluxion").Match(jobspec=jobspec(), request="allocate")
    assert (e.value.code(), e.value.details()) == (grpc.StatusCode.UNAUTHENTICATED, "a client certificate of grpc.clientCA is needed")


def test_health_needs_none(alone, pki):
    assert channel(alone, pki).unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10) == b"\x08\x01"


@pytest.mark.parametrize("how", ["stranger", "plaintext"])
def test_others_do_not_get_in(alone, pki, how):
    ch = alone.channel() if how == "plaintext" else channel(alone, pki, how)
    with pytest.raises(grpc.RpcError) as e:
        Client(ch, "fluxion").Match(jobspec=jobspec(), request="allocate", timeout=5)
    assert e.value.code() == grpc.StatusCode.UNAVAILABLE


def test_other_addresses_are_refused_where_nobody_could_be_told_from_another():
    done = subprocess.run([str(program()), "--standalone", "--host", "0.0.0.0", "--port", "1"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "without a cluster only grpc.clientCA can tell who may call" in done.stderr

#!/usr/bin/env python3
"""image.py SOURCE DIST: the image in DIST is what docs/install.md says, runs, and comes out the same a second time.

Needs root: it runs the programs of the image with the image as their root, read-only, as the user it names.
"""
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SOURCE, DIST = (Path(a).resolve() for a in sys.argv[1:3])


def blob(tar, descriptor):
    data = tar.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
    ok("sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"] and len(data) == descriptor["size"],
       f"blob {descriptor['digest'][7:19]} is whole")
    return data


def inside(root, *command, by=()):
    """Run a program of the image as its user, with the image read-only as its root, in namespaces of its own; by a program of ours, if given."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    return subprocess.run(["unshare", "--mount", "--net", "sh", "-c", script, "sh", root, *by, "chroot", "--userspec=65532:65532", root, *command], env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
                          capture_output=True, text=True, timeout=60)


# Asks grpc.health.v1.Health with plain frames of HTTP/2 until the server answers, ends the server, and prints the
# answer.
CALL = """
import signal, socket, subprocess, sys, time
def frame(kind, flags, stream, body=b""):
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body
fields = [(":method", "POST"), (":scheme", "http"), (":path", "/grpc.health.v1.Health/Check"), (":authority", "x"), ("te", "trailers"),
          ("content-type", "application/grpc")]
head = b"".join(b"\\0" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode() for n, v in fields)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
daemon = subprocess.Popen(sys.argv[1:])
for _ in range(300):
    try:
        s = socket.create_connection(("127.0.0.1", 4242), timeout=30)
        break
    except OSError:
        time.sleep(0.1)
s.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + frame(4, 0, 0) + frame(1, 4, 1, head) + frame(0, 1, 1, bytes(5)))
got = b""
while b"\\0\\0\\0\\0\\2\\x08\\1" not in got and (part := s.recv(4096)):
    got += part
print("serving" if b"\\0\\0\\0\\0\\2\\x08\\1" in got else got, flush=True)
daemon.send_signal(signal.SIGTERM)
sys.exit(daemon.wait(30))
"""


def commit():
    return subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


# The second build uses the sources as they are now, so that editing them during the test does not fail it.
folder = tempfile.TemporaryDirectory()
copy = Path(folder.name) / "somewhere" / "else"
copy.mkdir(parents=True)
head = commit()
listed = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
for name in filter(None, listed.split("\0")):
    (copy / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(SOURCE / name, copy / name, follow_symlinks=False)

archive = next(DIST.glob("*.oci.tar"))
stem = str(archive).removesuffix(".oci.tar")
with tarfile.open(archive) as tar:
    index = json.loads(tar.extractfile("index.json").read())
    ok(json.loads(tar.extractfile("oci-layout").read()) == {"imageLayoutVersion": "1.0.0"}, "the archive is an OCI image layout")
    manifest = json.loads(blob(tar, index["manifests"][0]))
    config = json.loads(blob(tar, manifest["config"]))
    layers = [blob(tar, layer) for layer in manifest["layers"]]
    old = json.loads(tar.extractfile("manifest.json").read())[0]
    ok(old["RepoTags"] == [index["manifests"][0]["annotations"]["io.containerd.image.name"]], "docker and containerd find the same name")
digest = index["manifests"][0]["digest"]
ok(Path(stem + ".digest").read_text().strip() == digest, "the digest beside it is that of the manifest")
size = sum(map(len, layers))
ok(size < 40e6, f"below 40 MB compressed: {size / 1e6:.1f} MB")
ok(["sha256:" + hashlib.sha256(gzip.decompress(layer)).hexdigest() for layer in layers] == config["rootfs"]["diff_ids"], "layers are what the configuration says")

version = re.search(r"version: '([^']+)'", (SOURCE / "meson.build").read_text())[1]
run = config["config"]
ok(run["User"] == "65532:65532" and run["Entrypoint"] == ["/usr/bin/sluiced"], "the image starts sluiced, and not as root")
wanted = {f"org.opencontainers.image.{k}" for k in ("title", "description", "version", "created", "revision", "licenses", "url", "vendor")}
ok(wanted <= run["Labels"].keys() and run["Labels"]["org.opencontainers.image.version"] == version, "the image has the labels of the OCI conventions", run["Labels"])

docker = (SOURCE / "packaging/image/Dockerfile").read_text()
told = dict(re.findall(r'(org\.opencontainers[\w.]+)="([^"]*)"', docker))
ok(all(run["Labels"][k] == v for k, v in told.items()) and len(told) >= 7, "the Dockerfile says the same labels", told)
ok(f"USER {run['User']}" in docker and json.loads(re.search(r"^ENTRYPOINT (.*)$", docker, re.M)[1]) == run["Entrypoint"]
   and set(re.search(r"^EXPOSE (.*)$", docker, re.M)[1].split()) == run["ExposedPorts"].keys(), "and user, entry point and ports")

with folder:
    root = Path(folder.name) / "root"
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer))) as tar:
            tar.extractall(root)
    root.chmod(0o755)
    Path(folder.name).chmod(0o755)
    programs = sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and not p.is_symlink() and os.access(p, os.X_OK) and ".so" not in p.name)
    ok(programs == ["usr/bin/sluice", "usr/bin/sluiced"], "the image has two programs and no shell", programs)
    for at in ("usr/bin/sluiced", "usr/bin/sluice"):
        done = inside(root, "/" + at, "--version")
        ok(done.returncode == 0 and done.stdout == f"{Path(at).name} {version}\n", f"{at} runs there", done)
    done = inside(root, "/usr/bin/sluiced", "--kubeconfig", "/none", "--store", "memory:")
    ok(done.returncode == 1 and "/none" in done.stderr, "sluiced says what it lacks", done)
    done = inside(root, "/usr/bin/sluice", "store", "check", "postgres://127.0.0.1:1/x")
    ok(done.returncode == 1 and "127.0.0.1" in done.stderr, "libpq works in the image", done)
    done = inside(root, "/usr/bin/sluiced", "--standalone", by=(sys.executable, "-c", CALL))
    ok(done.returncode == 0 and done.stdout == "serving\n" and "started without a cluster" in done.stderr, "sluiced --standalone serves and stops there", done)
    certificates = (root / "etc/ssl/certs/ca-certificates.crt").read_text().count("BEGIN CERTIFICATE")
    ok(certificates > 100, f"{certificates} public authorities")

    bill = json.loads(Path(stem + ".spdx.json").read_text())
    names = {p["name"] for p in bill["packages"]}
    here = {p.name for p in (root / "var/lib/dpkg/status.d").iterdir()}
    ok(bill["spdxVersion"] == "SPDX-2.3" and names == here | {"sluice.sh/sluice", "sluice", "yyjson"}, "the bill of materials names the packages of the image", names ^ here)
    ok(all(p.get("checksums") for p in bill["packages"] if "deb-" in p["SPDXID"]), "the bill of materials has the hash of each package")
    ok(all((root / "usr/share/doc" / name / "copyright").exists() for name in here), "each licence that is named is there")
    ids = {p["SPDXID"] for p in bill["packages"]} | {"SPDXRef-DOCUMENT"}
    ok(all(r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids for r in bill["relationships"]), "no relationship leads nowhere")

    # Once more: other folder, no compiler cache, another time of day.
    # the same commit is checked out there
    shutil.copy(SOURCE / ".git", copy / ".git") if (SOURCE / ".git").is_file() else os.symlink(SOURCE / ".git", copy / ".git")
    env = {**os.environ, "CCACHE_DISABLE": "1"}
    done = subprocess.run(["make", "-C", copy, "image"], env=env, capture_output=True, text=True)
    ok(commit() == head, "no commit was made during the test", f"{head} became {commit()}: the image names its commit, so the two builds differ")
    second = next((copy / "dist").glob("*.digest"), None) if done.returncode == 0 else None
    ok(second is not None and second.read_text().strip() == digest, f"a second build has the same digest {digest[7:19]}", second.read_text() if second else done.stderr + done.stdout[-2000:])
    for suffix in (".oci.tar", ".spdx.json"):
        ok(second is not None and (second.with_suffix("").parent / Path(stem + suffix).name).read_bytes() == Path(stem + suffix).read_bytes(), f"a second build has the same {suffix}")
finish()

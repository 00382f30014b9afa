"""Keys and certificates of one cluster, made with the openssl command."""

import secrets
import subprocess
from pathlib import Path

#: Who signs in with a client certificate: file name, user, groups.
USERS = {
    "admin": ("admin", ["system:masters"]),
    "controller-manager": ("system:kube-controller-manager", ["system:masters"]),
    "scheduler": ("system:kube-scheduler", []),
    "kwok": ("kwok", ["system:masters"]),
    "etcd-client": ("etcd-client", []),
    # The identity Sluice has when it runs inside a cluster, so that deploy/rbac.yaml decides.
    "sluice": (
        "system:serviceaccount:sluice-system:sluice",
        ["system:serviceaccounts", "system:serviceaccounts:sluice-system"],
    ),
}

NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-sha256")
LOCAL_NAMES = (
    "DNS:localhost,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default,"
    "DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
)


def _openssl(*args):
    return subprocess.Popen(
        ["openssl", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    )


def _finish(*procs):
    for p in procs:
        out, _ = p.communicate()
        if p.returncode:
            raise RuntimeError(f"{' '.join(p.args[:3])} failed: {out.decode(errors='replace')}")


def _subject(user, groups):
    return "".join(f"/O={g}" for g in groups) + f"/CN={user}"


def issue(folder, name, user, groups=(), extra=()):
    """Start making NAME.key and NAME.crt in `folder`, signed by its ca.crt; returns the process."""
    return _openssl(
        "req", "-x509", "-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key", *NEW_KEY,
        "-days", "365", "-subj", _subject(user, groups),
        "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt",
        "-addext", "basicConstraints=critical,CA:FALSE",
        "-addext", "keyUsage=critical,digitalSignature",
        "-addext", "extendedKeyUsage=serverAuth,clientAuth", *extra,
    )


def issue_user(folder, name, user, groups=(), expired=False):
    """NAME.key and NAME.crt for one more user, or with a certificate that was valid until yesterday."""
    if not expired:
        _finish(issue(folder, name, user, groups))
        return
    request = f"{folder}/{name}.csr"
    _finish(_openssl("req", "-new", *NEW_KEY, "-subj", _subject(user, groups),
                     "-keyout", f"{folder}/{name}.key", "-out", request))
    _finish(_openssl("x509", "-req", "-in", request, "-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key",
                     "-CAcreateserial", "-days", "-1", "-out", f"{folder}/{name}.crt"))


def make(folder: Path):
    """All keys, certificates and tokens of a cluster in `folder`."""
    folder.mkdir(mode=0o700, parents=True)
    _finish(
        _openssl(
            "req", "-x509", *NEW_KEY, "-days", "365", "-subj", "/CN=sluice-test-ca", "-keyout", f"{folder}/ca.key",
            "-out", f"{folder}/ca.crt", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        ),
        _openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                 "-out", f"{folder}/serviceaccount.key"),
    )
    names = ("-addext", f"subjectAltName={LOCAL_NAMES}")
    _finish(
        *(issue(folder, name, user, groups) for name, (user, groups) in USERS.items()),
        issue(folder, "apiserver", "kube-apiserver", extra=names),
        issue(folder, "etcd", "etcd", extra=names),
        _openssl("pkey", "-in", f"{folder}/serviceaccount.key", "-pubout", "-out", f"{folder}/serviceaccount.pub"),
    )
    lines = []
    for name in ("admin", "sluice"):
        user, groups = USERS[name]
        token = secrets.token_hex(24)
        (folder / f"{name}.token").write_text(token)
        lines.append(f'{token},{user},{name},"{",".join(groups)}"\n')
    (folder / "tokens.csv").write_text("".join(lines))

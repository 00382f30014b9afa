"""The command behind `make cluster`:  hack/cluster/python -m cluster up|down|list|..."""

import argparse
import sys
import time
from pathlib import Path

from .api import ApiError
from .cluster import COMPONENTS, SHORT, Cluster, default_root
from .real import RealCluster


def _up(o):
    try:
        c = Cluster.load(o.name, o.root)
    except LookupError:
        c = None
    if c is not None and c.running():
        print(f"cluster {o.name} runs already", file=sys.stderr)
    else:
        if c is not None:
            c.down()  # what a crash of the machine left
        start = time.monotonic()
        options = dict(
            node_list=o.nodes, gang=o.gang, feature_gates=dict(_gate(g) for g in o.feature_gate),
            runtime_config=o.runtime_config, without=o.without, fairness=o.fairness,
        )
        c = (RealCluster(o.name, o.root, o.real, **options) if o.real else Cluster(o.name, o.root, **options)).up()
        count = len(c.admin.list("nodes"))
        print(f"cluster {o.name}: {count} nodes, up in {time.monotonic() - start:.1f} s", file=sys.stderr)
    print(f"export KUBECONFIG={c.kubeconfig}")
    print(f"# as Sluice, with the rules of deploy/rbac.yaml: {c.sluice_kubeconfig}")
    print(f"# the same with a token file: {c.sluice_token_kubeconfig}")


def _gate(text):
    name, _, value = text.partition("=")
    return name, value.lower() != "false"


def _down(o):
    if o.all:
        for folder in sorted(p.parent for p in (o.root or default_root()).glob("*/cluster.json")):
            Cluster.load(folder.name, folder.parent).down()
        return
    try:
        Cluster.load(o.name, o.root).down()
    except LookupError as e:
        print(e, file=sys.stderr)


def _list(o):
    for state in sorted((o.root or default_root()).glob("*/cluster.json")):
        c = Cluster.load(state.parent.name, state.parent.parent)
        print(f"{c.name}\t{c.server}\t{len(c.running())}/{len(COMPONENTS) - len(c.without)} running\t{c.kubeconfig}")


def _component(o):
    getattr(Cluster.load(o.name, o.root), o.command)(o.component)


def _guard(o):
    """Wait until standard input closes, then end the cluster."""
    sys.stdin.buffer.read()
    try:
        Cluster.load(o.name, o.root).down()
    except LookupError:
        pass


def main():
    parser = argparse.ArgumentParser(prog="cluster", description=__doc__)
    sub = parser.add_subparsers(dest="command", required=True)

    def command(name, function, help):
        p = sub.add_parser(name, help=help)
        p.add_argument("--name", default="dev", help="name of the cluster (default dev)")
        p.add_argument("--root", type=Path, help="folder of the clusters (default $SLUICE_CLUSTERS or the cache)")
        p.set_defaults(function=function)
        return p

    up = command("up", _up, "start a cluster, print the way to it")
    up.add_argument("--nodes", help="node file (default hack/cluster/nodes.yaml)")
    up.add_argument("--real", type=int, default=0, metavar="N", help="N real nodes beside the simulated ones; needs root")
    up.add_argument("--gang", action="store_true", help="native gang scheduling on")
    up.add_argument("--feature-gate", action="append", default=[], metavar="NAME[=false]")
    up.add_argument("--runtime-config", action="append", default=[], metavar="GROUP/VERSION=true")
    up.add_argument("--without", action="append", default=[], metavar="COMPONENT", help="do not start it")
    up.add_argument("--fairness", action="store_true", help="priority and fairness on in the API server")
    down = command("down", _down, "end a cluster and remove its folder")
    down.add_argument("--all", action="store_true", help="every cluster in the folder")
    command("list", _list, "the clusters there are")
    for name, text in (("start", "start"), ("stop", "end politely"), ("kill", "kill -9"), ("restart", "kill -9 and start")):
        command(name, _component, f"{text} one component").add_argument(
            "component", choices=sorted({*COMPONENTS, *SHORT}), metavar="COMPONENT"
        )
    command("guard", _guard, "wait until standard input closes, then end the cluster")
    o = parser.parse_args()
    try:
        o.function(o)
    except (ApiError, RuntimeError, ValueError, TimeoutError, LookupError, OSError) as e:
        sys.exit(f"cluster: {e}")


main()

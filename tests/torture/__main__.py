"""sluiced killed at every write, over a busy cluster.

    hack/cluster/python -m torture --points 1000 --store sqlite --store postgresql

needs a build with -Dcrash_points=true (make crash; SLUICE_CRASH_BUILD names its folder).  Each life of the daemon is
told at which crash point to die (base/crash.h); the next one begins at once.  Points are chosen so that
every place in the program is hit, many times.  Now and then the kill comes from outside, the API server, etcd
or PostgreSQL is restarted.  Witness and store are looked at after each life; at the end the script stops,
one last life may work undisturbed, and whatever was submitted must have ended.
"""

import argparse
import json
import sys

from .lives import STORES, torture


def main():
    parser = argparse.ArgumentParser(prog="torture", description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=1000, help="kills at a point, per store")
    parser.add_argument("--store", action="append", choices=STORES, help="default: both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=None, help="stop killing after so long, per store")
    parser.add_argument("--report", help="write the figures there as JSON")
    options = parser.parse_args()
    reports = []
    for store in options.store or STORES:
        report = torture(store, options.points, options.seed, minutes=options.minutes, say=lambda t: print(t, flush=True))
        print(report.text(), flush=True)
        reports.append(report)
    if options.report:
        with open(options.report, "w") as f:
            json.dump([r.as_dict() for r in reports], f, indent=1)
    print(f"{sum(sum(r.kills.values()) for r in reports)} kill points, {sum(len(r.wrong) for r in reports)} findings")
    return any(r.wrong for r in reports)


if __name__ == "__main__":
    sys.exit(main())

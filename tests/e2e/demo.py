"""make demo: gangs clog under the default scheduler and flow through Sluice; live table, summary, picture."""

import argparse
import colorsys
import html
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cluster import Cluster, work  # noqa: E402
from cluster.gangs import GangWatch  # noqa: E402
from e2e.daemon import ROOT, Sluiced  # noqa: E402

NODES = 12
CPU = 8


def gangs(count, seed):
    rng = random.Random(seed)
    return [(f"gang-{i:02}", rng.choice([2, 3, 4, 6]), rng.randint(2, 5)) for i in range(count)]


class Recorder(GangWatch):
    """Also notes when which pod was on which node, for the picture."""

    def __init__(self, *args):
        super().__init__(*args)
        self.bars = {}  # uid -> [gang, node, from, to]
        self.began = {}  # gang -> {pod: when it ran}

    def _event(self, kind, pod):
        super()._event(kind, pod)
        meta, node = pod["metadata"], pod["spec"].get("nodeName")
        group = self.group_of(pod)
        if not node or not group:
            return
        if pod["status"].get("phase") == "Running":
            self.began.setdefault(group[0][1], {}).setdefault(meta["name"], time.time())
        bar = self.bars.setdefault(meta["uid"], [group[0][1], node, time.time(), None])
        if bar[3] is None and (kind == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed")):
            bar[3] = time.time()


def let_go(admin, space, watch, runs, released):
    """A gang computes only while all of it runs: its time begins when it is whole."""
    for (_, name), gang in watch.snapshot().items():
        if gang.running_at is None or name in released:
            continue
        released.add(name)
        members = list(watch.began.get(name, {}).items())

        def free(member, run=runs[name]):
            pod, began = member
            notes = {"sluice.test/hang": None, "sluice.test/run-seconds": f"{time.time() - began + run:.1f}"}
            admin.patch("pods", pod, {"metadata": {"annotations": notes}}, space)

        admin.map(free, members)


class Screen:
    """A table that is redrawn in place on a terminal, printed once in a while elsewhere."""

    def __init__(self):
        self.live = sys.stdout.isatty()
        self.lines = 0
        self.last = 0

    def draw(self, lines, final=False):
        if not self.live and not final and time.monotonic() - self.last < 5:
            return
        self.last = time.monotonic()
        if self.live and self.lines:
            print(f"\x1b[{self.lines}A\x1b[J", end="")
        print("\n".join(lines), flush=True)
        self.lines = 0 if final else len(lines)


def bar(part, whole, width=30):
    full = round(width * part / whole) if whole else 0
    return "█" * full + "·" * (width - full)


def table(title, watch, wanted, begun, limit):
    seen = watch.snapshot().values()
    done = sum(g.done_at is not None for g in seen)
    whole = sum(g.running_at is not None and g.done_at is None for g in seen)
    half = sum(g.half_started for g in seen)
    held = sum(len(g.bound) for g in seen if g.half_started)
    passed = time.time() - begun
    return [
        f"  {title:<18} {bar(done, wanted)} {done:>2} of {wanted} gangs done   {passed:5.1f} s"
        + (f" (stops at {limit:.0f} s)" if limit else ""),
        f"  {'':<18} whole and running {whole:>2}    half-started {half:>2}, holding {held:>2} nodes that do nothing",
    ]


def play(cluster, scheduler, title, work_list, limit, screen):
    """Submit all gangs at once and watch until they are done, or nothing has moved for a while."""
    admin = cluster.admin
    space = f"demo-{scheduler}"
    cluster.namespace(space)
    pods = [p for name, size, run in work_list
            for p in work.gang(name, size, cpu=CPU, namespace=space, run=run, scheduler=scheduler,
                               annotations={"sluice.sh/duration": str(run + 1), "sluice.test/hang": "end"})]  # fmt: skip
    # Pods of different gangs arrive interleaved, as they do when users submit at once.
    random.Random(3).shuffle(pods)
    runs, released = {name: run for name, _, run in work_list}, set()
    with Recorder(admin, space) as watch:
        begun = time.time()
        moved, last = time.time(), None
        admin.create_many(pods)
        while True:
            let_go(admin, space, watch, runs, released)
            finished = len(watch.finished())
            state = (finished, sum(len(g.bound) for g in watch.snapshot().values()))
            if state != last:
                moved, last = time.time(), state
            screen.draw(table(title, watch, len(work_list), begun, limit))
            over = finished == len(work_list)
            # Half-started gangs alone never move again under a scheduler that knows no gangs; all else may only be slow.
            seen = watch.snapshot().values()
            clogged = limit and any(g.half_started for g in seen) and not any(
                g.running_at is not None and g.done_at is None for g in seen)
            stuck = time.time() - moved > (8 if clogged else 60) and not over
            if over or stuck or (limit and time.time() - begun > limit):
                break
            time.sleep(0.1)
        screen.draw(table(title, watch, len(work_list), begun, limit), final=True)
        end = time.time()
    admin.delete_all("pods", space, grace=0)
    seen = watch.snapshot().values()
    return {
        "title": title, "finished": len(watch.finished()), "half": len(watch.half_started()),
        "stuck": stuck, "makespan": max((g.done_at for g in seen if g.done_at), default=end) - begun,
        "clogged": watch.clogged(), "partial": watch.longest_partial(), "bars": list(watch.bars.values()),
        "begun": begun, "end": end,
    }  # fmt: skip


def chart(result, wanted, names, longest, top):
    """A lane per node, a bar per pod, grey where a gang was never whole; the lines, and where the next one begins."""
    width, lane, left = 900, 14, 90
    note = "stands still for ever" if result["stuck"] else f'makespan {result["makespan"]:.1f} s'
    title = f'{result["title"]}: {result["finished"]} of {wanted} gangs, {note}'
    yield f'<text x="0" y="{top + 16}" font-size="15" font-weight="bold">{html.escape(title)}</text>'
    top += 26
    for i, n in enumerate(names):
        yield f'<text x="0" y="{top + i * lane + 11}">{html.escape(n)}</text>'
    for gang, node, start, stop in sorted(result["bars"], key=lambda b: b[2]):
        x = left + (start - result["begun"]) / longest * width
        w = max(1.0, ((stop or result["end"]) - start) / longest * width)
        rgb = colorsys.hls_to_rgb((int(gang.rpartition("-")[2]) * 47) % 360 / 360, 0.55, 0.6)
        colour = "#" + "".join(f"{round(255 * c):02x}" for c in rgb) if stop else "#b5b5b5"
        yield (
            f'<rect x="{x:.1f}" y="{top + names.index(node) * lane + 2}" width="{w:.1f}" height="{lane - 3}" '
            f'fill="{colour}"><title>{html.escape(gang)}</title></rect>'
        )
    for s in range(0, int(longest) + 1, 10):
        yield f'<text x="{left + s / longest * width:.0f}" y="{top + lane * len(names) + 20}">{s} s</text>'


def picture(results, wanted, file):
    """One page, and the picture in it as a file beside it."""
    longest = max(r["end"] - r["begun"] for r in results)
    names = sorted({b[1] for r in results for b in r["bars"]})
    each = 14 * len(names) + 66
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {each * len(results)}" role="img" '
        'font-family="system-ui,sans-serif" font-size="10" fill="#777">',
        f"<title>The same {wanted} gangs on {len(names)} nodes, under each scheduler</title>",
        "<desc>Drawn by make demo. A lane is a node, a bar is a pod, a colour is a gang; grey pods hold their node for a "
        "gang that never became whole.</desc>",
    ]
    for i, r in enumerate(results):
        svg += chart(r, wanted, names, longest, i * each)
    svg = "\n".join([*svg, "</svg>\n"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".svg").write_text(svg)
    file.write_text(
        "<!doctype html><meta charset=utf-8><title>Sluice: the clogging demonstration</title>"
        "<style>body{font:15px sans-serif;margin:2em;max-width:1050px}svg{width:100%}</style>"
        "<h1>The same gangs, twice</h1><p>A lane is a node, a bar is a pod, a colour is a gang; grey pods hold their node "
        "for a gang that never became whole.</p>" + svg
    )


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--gangs", type=int, default=24)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--picture", type=Path, default=ROOT / "build" / "demo.html")
    o = args.parse_args()
    todo = gangs(o.gangs, o.seed)
    perfect = sum(size * run for _, size, run in todo) / NODES
    screen = Screen()
    print(f"Starting a Kubernetes with {NODES} simulated nodes ...", flush=True)
    with Cluster(f"demo-{os.getpid()}", node_list=[{"name": "node", "count": NODES, "cpu": CPU}]) as cluster:
        print(f"{len(todo)} gangs of 2 to 6 whole-node pods, {sum(s for _, s, _ in todo)} pods; "
              f"perfect packing would need {perfect:.0f} s.\n", flush=True)  # fmt: skip
        results = [play(cluster, "default-scheduler", "default scheduler", todo, 40, screen)]
        print()
        with Sluiced(cluster):
            results.append(play(cluster, "sluice", "Sluice", todo, None, screen))
    print(f"\n  {'':<18} {'finished':>9} {'half-started':>13} {'makespan':>10} {'clogged pod-seconds':>20}")
    for r in results:
        span = "never ends" if r["stuck"] or r["finished"] < len(todo) else f"{r['makespan']:.1f} s"
        print(f"  {r['title']:<18} {r['finished']:>5} / {len(todo)} {r['half']:>13} {span:>10} {r['clogged']:>20.1f}")
    picture(results, len(todo), o.picture)
    print(f"\n  Picture: {o.picture}")
    return 0 if results[-1]["finished"] == len(todo) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nstopped; nothing is left behind")

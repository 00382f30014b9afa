#!/usr/bin/env python3
"""sluiced as it is typed by those who come from Fluence, Fluxnetes and Fluxqueue: their scheduler's file, their words, and what ends with 2."""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tap import finish, ok  # noqa: E402

SLUICED = str(Path(sys.argv[1]).resolve())
DIR = Path(tempfile.mkdtemp(prefix="sluiced-cli-"))


def run(*args):
    p = subprocess.run([SLUICED, *args], cwd=DIR, capture_output=True, text=True, timeout=60)
    return p.returncode, p.stdout, p.stderr


def settings(*args):
    rc, out, err = run(*args, "--print-config")
    ok(rc == 0 and not err, f"{' '.join(args)}: the settings are read", (rc, err))
    return json.loads(out) if rc == 0 else {}


def fails(code, says, *args):
    rc, out, err = run(*args)
    ok(rc == code and says in err and not out, f"{' '.join(args)}: exit {code}, {says}", (rc, out, err))


# The ConfigMap `scheduler-config` of the originals' charts, key scheduler-config.yaml.
(DIR / "scheduler-config.yaml").write_text("""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: fluxqueue
  plugins:
    preBind:
      disabled: [{name: "*"}]
      enabled: [{name: Fluence}]
""")
got = settings("--config=scheduler-config.yaml")
ok(got.get("schedulerNames") == ["fluxqueue"], "the scheduler's name is that of the file", got.get("schedulerNames"))
ok(got.get("leader", {}).get("elect") is False, "leader election is that of the file", got.get("leader"))

DEFAULT = settings().get("match", {}).get("policy")
ok(settings("--policy", "hi")["match"]["policy"] == "high", "--policy hi means high")
ok(settings("--policy", "high")["match"]["policy"] == "high", "--policy high means high")
ok(settings("--policy", "variation")["match"]["policy"] == DEFAULT, "--policy variation has no effect on a cluster")
(DIR / "hi.yaml").write_text("match: {policy: hi}\n")
ok(settings("--config", "hi.yaml")["match"]["policy"] == "high", "match.policy hi in a file means high")

fails(2, "unrecognized option '--nosuch'", "--nosuch")
fails(2, 'unexpected argument "extra"', "extra")
fails(2, 'unknown match policy "highest"', "--policy", "highest", "--print-config")
fails(2, "nosuch.yaml: No such file", "--config", "nosuch.yaml")
fails(2, "--graph goes with --standalone", "--graph", "x.json")
for name, text, says in (
    ("kind.yaml", "apiVersion: v1\nkind: SomethingElse\n", "kind"),
    ("twice.yaml", "log: {level: info}\nlog: {level: warn}\n", 'twice.yaml:2: "log" is set twice'),
    ("short.yaml", "queues:\n- {name: a, maxDuration: 10m}\n", "maxDuration 600 s is below jobs.defaultDuration 3600 s"),
):
    (DIR / name).write_text(text)
    fails(2, says, "--config", name)
fails(1, "cannot read kubeconfig", "--kubeconfig", "/nosuch/kubeconfig")

# What has no meaning is named in a line of the log, also where the start fails.
NOWHERE = ("--kubeconfig", "/nosuch/kubeconfig")
fails(1, "option ignored option=policy", "--policy", "variation", *NOWHERE)
(DIR / "variation.yaml").write_text("match: {policy: variation}\n")
for name, says in (("scheduler-config.yaml", "profiles.plugins"), ("variation.yaml", "match.policy: variation")):
    rc, out, err = run("--config", name, *NOWHERE)
    ok(rc == 1 and any("ignored" in line and says in line for line in err.splitlines()), f"{name}: {says} is named in the log", err)

for text, seconds in (("1h30m", 5400), ("1.5h", 5400), ("1w", 604800), ("01:30:00", 5400)):
    (DIR / "duration.yaml").write_text(f'jobs: {{defaultDuration: "{text}"}}\n')
    got = settings("--config", "duration.yaml").get("jobs", {}).get("defaultDuration")
    ok(got == seconds, f"{text} is {seconds} s", got)

finish()

"""The chart: linted, rendered, taken by the API server, installed, upgraded, rolled back, uninstalled; and that its roles
are what the daemon needs, no less and no more."""

import contextlib
import json
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
import yaml
from store.postgres import Postgres

from cluster import Cluster, work
from cluster.api import Api
from cluster.audit import Audit
from cluster.cluster import kubectl
from cluster.gangs import GangWatch
from cluster.proxy import Proxy

from . import chart, older
from .chart import CHART, NAMESPACE, helm, leftovers, rendered, values
from .tour import Tour, unused
from cluster.patience import until
from e2e.daemon import ROOT

CLUSTER = {"gang": True, "node_list": [{"name": "node", "count": 6, "cpu": 8}]}

#: The three charts' own values, every one of them, with what users change.
IMAGE = {"image": "example/x:latest"}
PULLED = {**IMAGE, "pullPolicy": "Always"}
PLUGINS = {"enabled": ["Fluence"], "disabled": ["CapacityScheduling", "Coscheduling"], "disabledAll": ["NodePorts", "VolumeZone"]}
COMMON = {"enableCertManager": True, "kubernetesClusterDomain": "cluster.local",
          "webhookService": {"type": "ClusterIP", "ports": [{"port": 9443, "protocol": "TCP", "targetPort": 9443}]}}
FLUENCE = {"scheduler": {**PULLED, "name": "my-fluence", "policy": "hinode", "replicaCount": 1, "leaderElect": True, "loggingLevel": "9", "port": 4242,
                         "enableExternalService": True, "sidecarimage": "fluence-sidecar:latest", "sidecarPullPolicy": "Always"},
           "controller": {**PULLED, "name": "scheduler-plugins-controller", "replicaCount": 1}, "plugins": PLUGINS,
           "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}], **COMMON}
FLUXNETES = {"scheduler": {**PULLED, "name": "fluxnetes", "replicaCount": 1, "leaderElect": False}, "database": PULLED, "postgres": PULLED,
             "sidecar": {**PULLED, "policy": "first", "loggingLevel": "2", "enableExternalService": False, "port": 4242}, "plugins": PLUGINS, **COMMON,
             "controller": {**IMAGE, "name": "x", "replicaCount": 1, "affinity": {}, "nodeSelector": {"disk": "ssd"},
                            "tolerations": [{"key": "launcher", "operator": "Exists"}]}}
FLUXQUEUE = {"fullnameOverride": "fluxqueue", "scheduler": {**PULLED, "name": "fluxqueue-scheduler", "replicaCount": 1, "leaderElect": False}, "postgres": PULLED,
             "controllerManager": {
                 "fluxion": {"image": {"repository": "x", "tag": "latest"}, "imagePullPolicy": "IfNotPresent"}, "podSecurityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                 "replicas": 1, "serviceAccount": {"annotations": {"a": "b"}}, "manager": {
                     "args": ["--metrics-bind-address=:8443", "--leader-elect", "--health-probe-bind-address=:9081", "--policy=lonode"],
                     "containerSecurityContext": {"allowPrivilegeEscalation": False}, "image": {"repository": "x", "tag": "latest"}, "imagePullPolicy": "Never",
                     "env": {"databaseUrl": "postgres://postgres:postgres@postgres:5432/postgres", "pgdatabase": "p", "pghost": "p", "pgpassword": "p", "pgport": "5432"},
                     "resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}}}},
             "metricsService": {"type": "ClusterIP", "ports": [{"name": "https", "port": 8443}]}, **COMMON}
EVERYTHING = {"replicas": 2, "store.kind": "postgres", "serviceMonitor.create": True, "dashboard.create": True, "grpc.enabled": True, "crds.keep": False,
              "config": {"match": {"policy": "pack"}, "queues": [{"name": "default"}, {"name": "long", "maxDuration": "7d"}]}}
NOTHING = {"parts": {"held": False, "nativeGroups": False, "resize": False, "webhook": False, "policy": False}, "store.kind": "memory", "crds.install": False,
           "networkPolicy.create": False, "priorityClass.create": False}

@pytest.fixture(scope="module")
def cluster(module_cluster):
    chart.bare(module_cluster)
    yield module_cluster


@pytest.fixture
def install(cluster):
    """install(**values): a release called sluice, gone at the end of the test."""

    def run(*options, source=CHART, **settings):
        return helm("upgrade", "--install", "sluice", source, "--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout", "2m",
                    *values(**settings), *options, cluster=cluster)

    yield run
    helm("uninstall", "sluice", "--namespace", NAMESPACE, "--wait", "--ignore-not-found", cluster=cluster, check=False)
    chart.bare(cluster)
    until(lambda: not any(n["metadata"]["name"] == NAMESPACE for n in cluster.admin.list("namespaces")), message="the namespace is gone")
    cluster.admin.delete("persistentvolumes", "sluice-store", None, missing_ok=True)


def test_lint():
    helm("lint", "--strict", CHART)
    helm("lint", "--strict", CHART, *values(**EVERYTHING))


def test_generated_files_agree():
    """Schema, table of values and deploy/ are what the chart makes today."""
    done = subprocess.run([ROOT / "hack/cluster/python", ROOT / "tools/chart", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong, said", [
    ({"replica": 2}, "replica"), ({"store.kind": "mysql"}, "store/kind"), ({"config": {"queues": [{"name": "a", "polcy": "fcfs"}]}}, "polcy"),
    ({"config": {"jobs": {"maxSize": 0}}}, "maxSize"), ({"image.digest": "sha256:abc"}, "digest"), ({"replicas": 2}, "store.kind=postgres"),
])  # fmt: skip
def test_mistakes_are_refused_before_anything_is_made(wrong, said):
    done = helm("template", "sluice", CHART, *values(**wrong), check=False)
    assert done.returncode != 0 and said in done.stderr.replace(".", "/") + done.stderr


@pytest.mark.parametrize("settings", [{}, EVERYTHING, NOTHING, FLUENCE, FLUXNETES, FLUXQUEUE], ids=["plain", "everything", "nothing", "fluence", "fluxnetes", "fluxqueue"])
def test_the_server_takes_it(cluster, settings):
    objects = [o for o in rendered(*values(**settings)) if o["kind"] != "ServiceMonitor"]  # the operator's kind is not here
    try:
        cluster.namespace(NAMESPACE, labels={"pod-security.kubernetes.io/enforce": "restricted"})
        done = subprocess.run([kubectl(), "apply", "--dry-run=server", "-f", "-"], env=cluster.env(), input=yaml.safe_dump_all(objects), capture_output=True, text=True)
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
        assert len(done.stdout.splitlines()) == len(objects)
    finally:
        cluster.admin.delete("namespaces", NAMESPACE, None)
        until(lambda: not any(n["metadata"]["name"] == NAMESPACE for n in cluster.admin.list("namespaces")), message="the namespace is gone")


def settings_of(objects):
    return yaml.safe_load(next(o for o in objects if o["kind"] == "ConfigMap" and "sluiced.yaml" in o["data"])["data"]["sluiced.yaml"])


def test_values_of_the_old_charts_mean_what_they_did():
    objects = rendered(*values(**FLUENCE))
    found = settings_of(objects)
    assert found["match"]["policy"] == "hinode" and "my-fluence" in found["schedulerNames"] and found["log"]["level"] == "debug"
    assert found["grpc"] == {"port": 4242, "host": "", "external": True}
    hook = next(o for o in objects if o["kind"] == "MutatingWebhookConfiguration")["webhooks"][0]
    assert "'my-fluence'" in hook["matchConditions"][0]["expression"]
    pod = next(o for o in rendered(*values(**FLUXNETES)) if o["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"disk": "ssd"} and pod["tolerations"][0]["key"] == "launcher"
    objects = rendered(*values(**FLUXQUEUE))
    deployment = next(o for o in objects if o["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert deployment["metadata"]["name"] == "fluxqueue" and deployment["spec"]["replicas"] == 1
    assert container["env"][0]["valueFrom"]["secretKeyRef"]["name"] == "fluxqueue-database"
    # the chart has a say in election and ports: a Lease with its rules, and probes that meet the daemon
    assert container["args"] == ["--config=/etc/sluice/sluiced.yaml", "--policy=lonode"]
    assert settings_of(objects)["leader"]["elect"] and settings_of(objects)["serve"]["health"] == ":8081"
    assert any(o["kind"] == "Lease" for o in objects)
    assert any("leases" in rule["resources"] for o in objects if o["kind"] == "Role" for rule in o["rules"])
    two = rendered(*values(**FLUXQUEUE), *values(controllerManager__replicas=2))
    assert next(o for o in two if o["kind"] == "Deployment")["spec"]["replicas"] == 2
    # one replica with a SQLite file has nobody to elect
    assert not settings_of(rendered(*values(**FLUENCE)))["leader"]["elect"]
    # what the daemon is told is what it understands
    for values_ in (FLUENCE, FLUXNETES, FLUXQUEUE, EVERYTHING, NOTHING, {}):
        text = yaml.safe_dump(settings_of(rendered(*values(**values_))))
        done = subprocess.run([ROOT / "build/sluiced", "--config", "/dev/stdin", "--print-config"], input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_what_comes_with_it():
    """Two replicas with every part on: the objects that protect the pods, the objects that find them, and that names
    and labels agree."""
    objects = {}
    for o in rendered(*values(**EVERYTHING)):
        objects.setdefault(o["kind"], []).append(o)
    (deployment,), (policy,), (budget,), (rank,), (monitor,) = (
        objects[k] for k in ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "ServiceMonitor"))  # fmt: skip
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]

    def selects(selector):
        return selector["matchLabels"].items() <= labels.items()

    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert ports == {"https": 8443, "health": 8081, "webhook": 9443, "grpc": 4242}
    assert selects(policy["spec"]["podSelector"]) and policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert {p["port"] for rule in policy["spec"]["ingress"] for p in rule["ports"]} == set(ports), "every port of the pod and no other"
    assert {p["port"] for rule in policy["spec"]["egress"] for p in rule["ports"]} == {53, 443, 6443, 5432}, "DNS, the API server, the store"
    assert selects(budget["spec"]["selector"]) and budget["spec"]["maxUnavailable"] == 1
    assert pod["priorityClassName"] == rank["metadata"]["name"] and rank["value"] == 1000000000
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert {k: container[k]["httpGet"]["path"] for k in ("startupProbe", "livenessProbe", "readinessProbe")} == {
        "startupProbe": "/healthz", "livenessProbe": "/livez", "readinessProbe": "/readyz"}  # fmt: skip
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["securityContext"]["runAsNonRoot"]
    service = next(o for o in objects["Service"] if monitor["spec"]["selector"]["matchLabels"].items() <= o["metadata"]["labels"].items()
                   and any(p["name"] == monitor["spec"]["endpoints"][0]["port"] for p in o["spec"]["ports"]))  # fmt: skip
    assert monitor["spec"]["endpoints"][0]["path"] == "/metrics" and service["spec"]["selector"].items() <= labels.items()
    assert all(p["targetPort"] in ports for o in objects["Service"] for p in o["spec"]["ports"])
    assert next(p for p in service["spec"]["ports"] if p["name"] == "grpc").get("appProtocol") != "kubernetes.io/h2c", "the port speaks TLS"
    board = next(o for o in objects["ConfigMap"] if o["metadata"]["labels"].get("grafana_dashboard") == "1")
    assert json.loads(board["data"]["sluice.json"])["panels"]
    names = {o["metadata"]["name"] for o in objects["CustomResourceDefinition"]}
    assert names == {p.stem for p in (CHART / "files/crds").glob("*.yaml")}, "templates, so that an upgrade changes them"


def test_notes_name_what_has_no_meaning(cluster):
    def ignored(settings):
        told = helm("install", "sluice", CHART, "--dry-run=client", *values(**settings), cluster=cluster).partition("no meaning here")[2]
        return {line.strip().partition(": ")[0] for line in told.splitlines()[1:] if line.strip()}

    assert ignored(FLUENCE) == {
        "plugins", "pluginConfig", "enableCertManager", "webhookService", "scheduler.image", "scheduler.sidecarimage", "scheduler.sidecarPullPolicy",
        "controller.name", "controller.image", "controller.pullPolicy", "controller.replicaCount", "leader election"}  # fmt: skip
    assert ignored(FLUXNETES) == {
        "plugins", "database", "postgres", "enableCertManager", "webhookService", "scheduler.image", "sidecar.image", "sidecar.pullPolicy",
        "controller.name", "controller.image", "controller.replicaCount"}  # fmt: skip
    manager = "controllerManager.manager"
    assert ignored(FLUXQUEUE) == {
        "postgres", "enableCertManager", "webhookService", "metricsService", "scheduler.image", "controllerManager.fluxion", "controllerManager.podSecurityContext",
        f"{manager}.containerSecurityContext", f"{manager}.image", f"{manager}.imagePullPolicy", f"{manager}.env.pgdatabase", f"{manager}.env.pghost",
        f"{manager}.env.pgpassword", f"{manager}.env.pgport", f"{manager}.args, --metrics-bind-address", f"{manager}.args, --health-probe-bind-address"}  # fmt: skip
    assert ignored({"kubernetesClusterDomain": "my.domain", "scheduler": {"polcy": "x"}}) == {"kubernetesClusterDomain", "scheduler.polcy"}
    assert "no meaning" not in helm("install", "sluice", CHART, "--dry-run=client", cluster=cluster)


def test_dashboard_shows_metrics_there_are(cluster, install):
    board = json.loads((CHART / "files/dashboard.json").read_text())
    used = {m for p in board["panels"] for t in p.get("targets", []) for m in re.findall(r"\b((?:sluice|process)_\w+)", t["expr"])}
    install(store__kind="memory")
    with chart.ChartDaemon(cluster) as d:
        text = d.request("GET", "/metrics")[1]
    served = set(re.findall(r"^# TYPE (\w+)", text, re.M))
    assert len(used) > 25 and used <= served, used - served


def test_install_run_upgrade_roll_back_uninstall(cluster, install, tmp_path):
    # The version before: an older image, a custom resource without one of its columns.
    old = tmp_path / "old"
    shutil.copytree(CHART, old)
    (old / "Chart.yaml").write_text((CHART / "Chart.yaml").read_text().replace("0.1.0", "0.0.9"))
    crd = old / "files/crds/fluxjobs.jobs.converged-computing.org.yaml"
    crd.write_text(re.sub(r"^ +- \{name: Position.*\n", "", crd.read_text(), flags=re.M))

    def columns():
        found = cluster.admin.get("customresourcedefinitions", "fluxjobs.jobs.converged-computing.org", None)
        return {c["name"] for c in found["spec"]["versions"][0]["additionalPrinterColumns"]}

    def image():
        return cluster.admin.get("deployments", "sluice", NAMESPACE)["spec"]["template"]["spec"]["containers"][0]["image"]

    chart.volume(cluster)
    begin = time.monotonic()
    install(source=old)
    took = time.monotonic() - begin
    cluster.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    assert image().endswith(":0.0.9") and "Position" not in columns()
    with chart.ChartDaemon(cluster) as d:
        cluster.admin.create(work.job("train", pods=4, cpu=8, run=600, scheduler="sluice"))
        until(lambda: d.jobs()["train"]["state"] == "running", message="a gang runs")
        print(f"\nfrom nothing to a running gang: {took:.1f} s for helm install --wait, {time.monotonic() - begin:.1f} s in all")
        certificate = cluster.admin.get("secrets", "sluice-webhook", NAMESPACE)["data"]["ca.crt"]

        def trusted():
            hooks = cluster.admin.get("mutatingwebhookconfigurations", "sluice", None)["webhooks"]
            return [h["clientConfig"].get("caBundle") for h in hooks]

        until(lambda: all(trusted()), message="the webhook is told its authority")
        install()  # the restricted namespace admits the new pod, or --wait fails
        assert image().endswith(":0.1.0") and "Position" in columns()
        assert cluster.admin.get("secrets", "sluice-webhook", NAMESPACE)["data"]["ca.crt"] == certificate
        assert trusted() == [certificate] * 2
        helm("rollback", "sluice", "1", "--namespace", NAMESPACE, "--wait", "--timeout", "2m", cluster=cluster)
        assert image().endswith(":0.0.9") and "Position" not in columns()
        assert cluster.admin.get("secrets", "sluice-webhook", NAMESPACE)["data"]["ca.crt"] == certificate
        assert d.jobs()["train"]["state"] == "running"
    helm("upgrade", "sluice", CHART, "--namespace", NAMESPACE, "--wait", "--timeout", "2m", cluster=cluster)

    helm("uninstall", "sluice", "--namespace", NAMESPACE, "--wait", cluster=cluster)
    kept = {f"customresourcedefinition.apiextensions.k8s.io/{p.stem}" for p in (CHART / "files/crds").glob("*.yaml")}
    until(lambda: leftovers(cluster) == kept, message="only the custom resources stay")
    assert all(p["status"]["phase"] == "Running" for p in cluster.admin.list("pods", "default")), "what runs runs on"
    cluster.admin.delete("jobs", "train", propagation="Background")
    chart.bare(cluster)

    install(crds__keep=False, store__kind="memory")
    helm("uninstall", "sluice", "--namespace", NAMESPACE, "--wait", cluster=cluster)
    until(lambda: not leftovers(cluster), message="nothing stays")


def test_no_pod_waits_for_a_daemon_that_is_gone(cluster, install, tmp_path):
    """A Deployment that was held has the gate in its template.  After an uninstall as on the page, a pod that it makes has none."""
    api = cluster.admin
    page = (ROOT / "docs/install.md").read_text()
    gates = re.search(r"^```sh\n(kubectl get deployments,.*?)^```", page, re.S | re.M)[1]

    def pods():
        return [p for p in api.list("pods", "lab") if not p["metadata"].get("deletionTimestamp")]

    def runs():
        return len(pods()) == 1 and pods()[0]["status"].get("phase") == "Running"

    install(store__kind="memory")
    cluster.namespace("lab", labels={"sluice.sh/hold": "true"})
    with chart.ChartDaemon(cluster, hooked=True):
        template = {"metadata": {"labels": {"a": "web"}}, "spec": work.pod("web", cpu=1, restart="Always")["spec"]}
        file = tmp_path / "web.json"
        file.write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "lab"},
                                    "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "web"}}, "template": template}}))  # fmt: skip
        create = ("create", "-o", "json", "-f", file)
        until(lambda: "fluxqueue" in cluster.kubectl(*create, "--dry-run=server"), message="the API server asks the webhook")
        assert "fluxqueue" in cluster.kubectl(*create), "the webhook held it"
        until(runs, message="the Deployment runs")
        cluster.kubectl("label", "namespace", "--all", "sluice.sh/hold-")
    helm("uninstall", "sluice", "--namespace", NAMESPACE, "--wait", cluster=cluster)
    assert runs(), "what runs runs on"
    env = cluster.env()
    env["PATH"] = f"{Path(kubectl()).parent}:{env['PATH']}"
    done = subprocess.run(["sh", "-ec", gates], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and "patched" in done.stdout, done.stdout + done.stderr
    api.delete_all("pods", "lab", grace=0)
    until(runs, message="a pod that is made afterwards runs")
    api.delete("namespaces", "lab", None)


def test_upgrade_from_an_older_version(cluster, install, tmp_path):
    """The first chart there was and its programs, upgraded to these: what runs runs on, what waits keeps its number and its turn, and
    the account asks for nothing it may not.  The older program refuses the newer store, and says so."""
    api, store = cluster.admin, f"sqlite:{tmp_path / 'store.db'}"
    chart.volume(cluster)
    install(source=older.chart())
    api.resources = None
    with chart.ChartDaemon(cluster, store=store, exe=older.program()) as d:
        api.create(work.job("train", pods=4, cpu=8, run=6000, scheduler="sluice"))
        until(lambda: d.jobs()["train"]["state"] == "running", message="a gang runs")
        for name in ("next", "last"):
            api.create(work.job(name, pods=5, cpu=8, run=2, scheduler="sluice"))  # the sixth node has the release's own pod
            until(lambda name=name: d.jobs()[name]["state"] == "waiting", message=f"{name} waits")
        numbers = {name: j["id"] for name, j in d.jobs().items()}
        runs = {p["metadata"]["uid"] for p in api.list("pods", "default") if p["spec"].get("nodeName")}
        assert len(runs) == 4
    before = len(chart.asked(cluster))
    install()
    api.resources = None
    assert api.list("reservations", "default") == [], "the kind that the older version did not know is served"
    with chart.ChartDaemon(cluster, store=store) as d:
        until(lambda: d.jobs()["train"]["state"] == "running" and d.jobs()["next"]["state"] == "waiting", message="the gangs are there again")
        assert {name: j["id"] for name, j in d.jobs().items()} == numbers
        assert {p["metadata"]["uid"] for p in api.list("pods", "default") if p["spec"].get("nodeName")} == runs
        api.delete("jobs", "train", propagation="Background")
        until(lambda: all(work.condition(api.get("jobs", n, "default"), "Complete") for n in ("next", "last")), message="those that waited end")
        begun = {n: min(p["status"]["startTime"] for p in api.list("pods", "default") if p["metadata"]["name"].startswith(n)) for n in ("next", "last")}
        assert begun["next"] < begun["last"], "in the order in which they came"
    refused = [r for r in chart.asked(cluster)[before:] if r[4] == 403]
    assert not refused, refused
    helm("rollback", "sluice", "1", "--namespace", NAMESPACE, "--wait", "--timeout", "2m", cluster=cluster)
    with pytest.raises(RuntimeError, match="schema version"):
        chart.ChartDaemon(cluster, store=store, exe=older.program()).start()
    for name in ("next", "last"):
        api.delete("jobs", name, propagation="Background")


def test_roles_are_what_is_needed(cluster, install):
    """One run through everything: no request is refused, and no rule is left over."""
    install(store__kind="memory", config={"leader": {"elect": True, "lease": "60s"}})  # it outlives a minute without the server
    before = len(chart.asked(cluster))
    with Proxy(cluster) as wire, chart.ChartDaemon(cluster, hooked=True, wire=wire, log={"level": "debug"}) as d:
        tour = Tour(cluster, d, wire)
        try:
            tour.go()
        except BaseException:
            print(d.tail(60))
            raise
        finally:
            tour.clean()
    with contextlib.suppress(TimeoutError):  # the log may be behind
        until(lambda: not unused(cluster, before))
    assert not unused(cluster, before)
    requests = chart.asked(cluster)[before:]
    refused = {r for r in requests if r[4] == 403}
    assert not refused, refused
    beyond = {r[:3] for r in requests} - {rule[:3] for rule in chart.granted(cluster)}
    assert not beyond, f"asked, and granted by no rule: {beyond}"


def test_parts_that_are_off_are_not_asked_for():
    """Without the optional parts the account has fewer rights, and the daemon keeps to them."""
    with Cluster("chart-parts", node_list=[{"name": "node", "count": 2, "cpu": 4}]) as bare:
        chart.bare(bare)
        until(lambda: not any(n["metadata"]["name"] == NAMESPACE for n in bare.admin.list("namespaces")), message="the namespace is gone")
        helm("install", "sluice", CHART, "--namespace", NAMESPACE, "--create-namespace", "--wait", *values(**NOTHING), cluster=bare)
        with chart.ChartDaemon(bare) as d:
            bare.admin.create(work.job("train", pods=2, cpu=3, run=600, scheduler="sluice"))
            until(lambda: d.jobs()["train"]["state"] == "running", message="a gang runs")
        requests = chart.asked(bare)
        assert requests and not {r for r in requests if r[4] == 403}
        assert not {r for r in requests if r[0] in ("scheduling.k8s.io", "jobs.converged-computing.org") and r[1] != "priorityclasses"}


def test_rolling_upgrade_under_load(cluster, install):
    """Two replicas of an older version on PostgreSQL, replaced by this one, one after the other while gangs come and go, as the
    Deployment does it: nothing is bound twice, no gang stays in part, nothing is lost, and no gang for which there is room waits
    longer than 3 s, so there are never 3 s without decisions."""
    with Postgres() as postgres:
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl("create", "secret", "generic", "sluice-postgres", "-n", NAMESPACE, f"--from-literal=url={postgres.url}")
        install(replicas=2, **{"store.kind": "postgres"})
        audit = Audit(cluster.audit_log).skip()
        team = [chart.ChartDaemon(cluster, store=postgres.url, exe=older.program()).start() for _ in range(2)]
        stop = threading.Event()
        made, twin = {}, Api.from_kubeconfig(cluster.kubeconfig)  # a connection for each thread

        def submit():
            while not stop.is_set():
                name = f"load{len(made)}"
                for p in work.gang(name, 2, cpu=2, run=1, scheduler="sluice"):
                    twin.create(p)
                made[name] = time.time()
                stop.wait(0.3)

        def waited(since, to):
            """How long each gang that was complete in that time waited for the last of its bindings."""
            at = {b.pod: b.time for b in audit.bindings("default") if b.ok}
            return [max(at[f"{name}-{i}"] for i in range(2)) - t for name, t in made.items() if since <= t <= to]

        thread = threading.Thread(target=submit)
        try:
            with GangWatch(cluster.admin, "default") as watch:
                thread.start()
                until(lambda: len(audit.bound("default")) > 10, message="gangs run")
                quiet = time.time()
                time.sleep(5)
                begin = time.time()
                for old in list(team):
                    team.append(chart.ChartDaemon(cluster, store=postgres.url).start())
                    assert old.stop() == 0
                    team.remove(old)
                    seen = len(audit.bound("default"))
                    until(lambda seen=seen: len(audit.bound("default")) > seen + 6, message="gangs run on")
                end = time.time()
                stop.set()
                thread.join()
                until(lambda: all(p["status"].get("phase") == "Succeeded" for p in cluster.admin.list("pods", "default")), message="all gangs end")
                assert not watch.half_started()
            there = {p["metadata"]["name"] for p in cluster.admin.list("pods", "default")}
            assert there == {f"{name}-{i}" for name in made for i in range(2)} and not audit.bound_twice("default")
            usual, gangs = waited(quiet, begin), waited(begin, end)
            print(f"\nrolling upgrade: {len(made)} gangs, {len(gangs)} of them in the {end - begin:.1f} s of the upgrade; "
                  f"the longest wait for a decision: {max(gangs):.2f} s, before it {max(usual):.2f} s")  # fmt: skip
            assert max(gangs) <= 3
        finally:
            stop.set()
            thread.join()
            for d in team:
                d.stop()
            cluster.admin.delete_all("pods", "default", grace=0)

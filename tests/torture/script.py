"""A busy hour of a cluster, compressed: what people, controllers and nodes do while sluiced dies."""

import http.client
import random
import threading
import time

from cluster import work
from cluster.api import ApiError

from .witness import Gang

NODES = 10
CPU = 8
#: Gangs that wait or run at most; more is not busier, only longer.
CROWD = 30
#: Seconds in which room is taken from the plan, and as many in which it is not: then promises must stand.
SPELL_S = 15

PRIORITIES = {"torture-high": 1000}


class Script:
    """Runs in a thread of its own, by one seed; `pace` seconds between two steps."""

    def __init__(self, cluster, witness, space, seed=1, pace=0.25, ask=None):
        self.cluster, self.admin, self.witness, self.space = cluster, cluster.admin, witness, space
        self.rng = random.Random(seed)
        self.pace = pace
        self.ask = ask  # (method, path): the read API of whichever daemon lives
        self.refused = None  # the node to which no pod can be bound
        self.number = 0
        self.steps = {}
        self.cordoned = []
        self.extra, self.leaving = [], {}
        self.late = []  # pods of gangs that gather slowly
        self.broken = []  # objects of gangs that could not be made as a whole
        self.failure = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def prepare(self):
        self.cluster.namespace(self.space)
        for name, value in PRIORITIES.items():
            self.admin.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                              "metadata": {"name": name}, "value": value})  # fmt: skip
        self.witness.nodes()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self._stop.set()
        self._thread.join(60)

    def calm(self):
        """No further steps; everything that was begun is completed, every node is there."""
        self.stop()
        for pod in self.late:
            self._try(lambda pod=pod: self.admin.create(pod))
        for node in self.cordoned:
            self._try(lambda node=node: self.cluster.cordon(node, False))
        if self.refused:
            self._try(self.refuse)
        self.late, self.cordoned = [], []
        self._try(self.mend)
        self.look_at_jobs()

    def _run(self):
        table = [
            (26, self.bare), (12, self.job), (4, self.waves), (6, self.podgroup), (5, self.failing_job),
            (5, self.failing), (6, self.urgent), (10, self.slow), (8, self.ladder), (10, self.delete),
            (5, self.cordon), (4, self.grow), (8, self.foreign), (9, self.held), (6, self.overdue),
            (7, self.cancel), (6, self.refuse),
        ]  # fmt: skip
        weights, steps = [w for w, _ in table], [s for _, s in table]
        begun, looked = time.monotonic(), 0.0
        while not self._stop.wait(self.pace):
            step = self.rng.choices(steps, weights)[0]
            calm = int((time.monotonic() - begun) / SPELL_S) % 2
            if self.refused and calm:
                step = self.refuse
            elif calm and step in (self.foreign, self.cordon, self.grow, self.refuse):
                continue
            if self.refused:
                self.witness.shrink()
            makes = step not in (self.delete, self.cordon, self.grow, self.cancel, self.refuse)
            if makes and len(self.witness.open()) >= CROWD:
                continue
            self.steps[step.__name__] = self.steps.get(step.__name__, 0) + self._try(step)
            if time.monotonic() - looked > 2:
                self._try(self.look_at_jobs)
                self._try(self.sweep)
                self._try(self.mend)
                looked = time.monotonic()

    def _try(self, step):
        """Returns whether the request was carried out. While the API server restarts, no request is."""
        for _ in range(100):
            try:
                step()
                return 1
            except (OSError, TimeoutError):
                if self._stop.wait(0.1):
                    time.sleep(0.1)
            except ApiError as e:
                if e.status not in (403, 429, 500, 503, 504):  # 403: a server that has just started
                    return 0
                time.sleep(0.1)
        self.failure = f"{step}: the API server does not come back"
        return 0

    # -- what is submitted -----------------------------------------------------------------------

    def _name(self, kind):
        self.number += 1
        return f"{kind}{self.number}"

    def _create(self, objects, gang=None):
        """All of them, or none: then the gang is not expected any more, and the next try makes another."""
        made = []
        try:
            for obj in objects:
                made.append(obj)
                self.admin.create(obj)
        except (ApiError, OSError):
            if gang:
                gang.deleted = time.time()
                self.broken += made
            raise

    def mend(self):
        """What was made of gangs that could not be made whole goes."""
        while self.broken:
            meta, kind = self.broken[0]["metadata"], self.broken[0]["kind"]
            self.admin.delete(kind, meta["name"], self.space, grace=0, propagation="Background", missing_ok=True)
            self.broken.pop(0)

    def _pods(self, name, size, cpu, limit=30, **more):
        notes = {"sluice.sh/duration": f"{limit}s", **more.pop("annotations", {})}
        scheduler = self.rng.choice(["sluice", "fluence"])
        run = more.pop("run", None) or self.rng.choice([1, 1, 2, 3])
        return work.gang(name, size, cpu=cpu, namespace=self.space, run=run, scheduler=scheduler, annotations=notes, **more)

    def _gang(self, kind, size, cpu, **more):
        shape = more.pop("shape", ())
        fails = more.pop("fails", False)
        name = self._name(kind)
        pods = self._pods(name, size, cpu, **more)
        gang = self.witness.expect(Gang(name, size, shape=shape, fails=fails))
        self._create(pods, gang)
        gang.asked = time.time()
        return gang

    def bare(self):
        self._gang("g", self.rng.choice([1, 2, 3, 4, 6, 8]), self.rng.choice([2, 4, 8]))

    def ladder(self):
        """All of one shape, most of the machine: they start in order of arrival."""
        self._gang("ladder", NODES - 2, CPU, shape=("ladder",), run=1)

    def urgent(self):
        self._gang("urgent", self.rng.choice([2, 4]), 4, priorityClassName="torture-high")

    def failing(self):
        self._gang("bad", self.rng.choice([1, 3]), 4, fails=True, annotations={"sluice.test/exit-code": "1"})

    def slow(self):
        """Its last members come later."""
        name, size = self._name("slow"), self.rng.choice([3, 4, 6])
        pods = self._pods(name, size, 4)
        gang = self.witness.expect(Gang(name, size))
        cut = self.rng.randrange(1, size)
        self._create(pods[:cut], gang)
        self.late += pods[cut:]
        gang.asked = time.time()
        while len(self.late) > 12:
            try:
                self.admin.create(self.late[0])
            except ApiError as e:
                if e.reason != "AlreadyExists":  # the answer to the first try was lost
                    raise
            self.late.pop(0)

    def _job(self, kind, pods, fails=False, completions=None, **notes):
        name = self._name(kind)
        labels = {"torture/gang": name}
        job = work.job(name, pods, completions, self.space, backoff=1 if fails else 3, labels=labels, cpu=4,
                       run=self.rng.choice([1, 2]), scheduler="fluence",
                       annotations={"sluice.sh/duration": "30s", **notes})  # fmt: skip
        gang = self.witness.expect(Gang(name, pods, job=True, fails=fails))
        self._create([job], gang)
        gang.asked = time.time()

    def job(self):
        self._job("job", self.rng.choice([2, 3, 4, 6]))

    def waves(self):
        self._job("waves", 2, completions=5)

    def failing_job(self):
        self._job("badjob", 2, fails=True, **{"sluice.test/exit-code": "1"})

    def held(self):
        """As admission makes it: suspended, with the gate; its places are decided, then it is let go."""
        name, size = self._name("held"), self.rng.choice([2, 3, 4])
        job = work.job(name, size, None, self.space, backoff=3, labels={"torture/gang": name}, cpu=4,
                       run=self.rng.choice([1, 2]), annotations={"sluice.sh/duration": "30s"},
                       schedulingGates=[{"name": "fluxqueue"}])  # fmt: skip
        job["metadata"]["annotations"] = {"sluice.sh/held": "yes"}
        job["spec"]["suspend"] = True
        gang = self.witness.expect(Gang(name, size, job=True))
        self._create([job], gang)
        gang.asked = time.time()

    def overdue(self):
        """Runs longer than it said: evicted at its end, by the daemon that lives then."""
        name = self._name("overdue")
        labels = {"torture/gang": name}
        job = work.job(name, 2, None, self.space, backoff=0, labels=labels, cpu=2, run=60, scheduler="sluice",
                       annotations={"sluice.sh/duration": "3s"})  # fmt: skip
        gang = self.witness.expect(Gang(name, 2, job=True, fails=True))
        self._create([job], gang)
        gang.asked = time.time()

    def podgroup(self):
        size = self.rng.choice([2, 4])
        name = self._name("pg")
        self._create([{"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
                       "metadata": {"name": name, "namespace": self.space}, "spec": {"minMember": size}}])  # fmt: skip
        gang = self.witness.expect(Gang(name, size))
        self._create(self._pods(name, size, 4), gang)
        gang.asked = time.time()

    def foreign(self):
        name = self._name("foreign")
        self._create([work.pod(name, cpu=1, namespace=self.space, run=self.rng.choice([1, 3]))])

    # -- what happens to it ----------------------------------------------------------------------

    def delete(self):
        """A gang is deleted by its owner: waiting, placed or running."""
        gangs = [g for g in self.witness.open() if g.asked]
        if not gangs:
            return
        self._withdraw(self.rng.choice(gangs))

    def _withdraw(self, gang):
        gang.deleted = time.time()
        self.late = [p for p in self.late if p["metadata"]["name"].rsplit("-", 1)[0] != gang.name]
        self._delete(gang)

    def cancel(self):
        """A person takes a gang out of the queue: whatever the daemon answered stands, and the objects are
        untouched."""
        gangs = [g for g in self.witness.open() if g.asked and g.whole is None and not g.bound]
        if not gangs or not self.ask:
            return
        gang = self.rng.choice(gangs)
        try:
            answer = self.ask("POST", f"/v1/jobs/{self.space}/{gang.name}/cancel")[1]
        except (ConnectionRefusedError, FileNotFoundError):
            return  # no daemon runs
        except (OSError, http.client.HTTPException):  # it died over it: either way is right
            self._withdraw(gang)
            return
        if "out of the queue" in answer:
            gang.cancelled = time.time()

    def refuse(self):
        """For a while no pod can be bound to a node: gangs are bound in part and taken back."""
        rule = "torture-refuses"
        if self.refused:
            self.admin.delete("validatingadmissionpolicybindings", rule, None, missing_ok=True)
            self.refused = None
            return
        node = f"node-{self.rng.randrange(NODES):03d}"
        group = "admissionregistration.k8s.io"
        pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
        self.admin.apply({
            "apiVersion": f"{group}/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": rule},
            "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [pods]},
                     "validations": [{"expression": f"object.target.name != '{node}'", "message": "not there"}]},
        })  # fmt: skip
        self.admin.apply({
            "apiVersion": f"{group}/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": rule},
            "spec": {"policyName": rule, "validationActions": ["Deny"]},
        })  # fmt: skip
        self.refused = node
        self.witness.shrink()

    def _delete(self, gang):
        if gang.job:
            self.admin.delete("jobs", gang.name, self.space, propagation="Background", missing_ok=True)
            return
        for i in range(gang.size):
            self.admin.delete("pods", f"{gang.name}-{i}", self.space, grace=0, missing_ok=True)

    def cordon(self):
        if self.cordoned and (len(self.cordoned) > 1 or self.rng.random() < 0.6):
            self.cluster.cordon(self.cordoned[0], False)
            self.cordoned.pop(0)
            return
        node = f"node-{self.rng.randrange(NODES):03d}"
        self.witness.shrink()
        self.cluster.cordon(node)
        self.cordoned.append(node)
        self.witness.shrink()

    def grow(self):
        """Add a node, or remove one of those: it is cordoned first, and removed when no pod is left on it."""
        if self.extra and (len(self.extra) > 1 or self.rng.random() < 0.5):
            node = self.extra[0]
            self.witness.shrink()
            if node not in self.leaving:
                self.cluster.cordon(node)
                self.leaving[node] = time.time()
            elif time.time() - self.leaving[node] > 10 and not self._busy(node):
                self.cluster.remove_node(node)
                self.extra.pop(0)
        else:
            node = self._name("extra-")
            self.cluster.add_nodes({"name": node, "cpu": CPU})
            self.extra.append(node)
        self.witness.nodes()
        self.witness.shrink()

    def _busy(self, node):
        return any(
            p["spec"].get("nodeName") == node and p["status"].get("phase") in ("Pending", "Running")
            for p in self.admin.list("pods")
        )

    def sweep(self):
        """What has ended some time ago is deleted, as its owner would."""
        now = time.time()
        for gang in list(self.witness.gangs.values()):
            if gang.cancelled and gang.deleted is None and now - gang.cancelled > 15:
                self._withdraw(gang)
            if gang.deleted is not None or gang.swept or not self.witness.done(gang):
                continue
            if gang.over is None:
                gang.over = now
            elif now - gang.over > 15:
                gang.swept = True
                self._delete(gang)

    def look_at_jobs(self):
        for job in self.admin.list("jobs", self.space):
            ends = [c["type"] for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"]
            gang = self.witness.gangs.get(job["metadata"]["name"])
            self.witness.jobs[job["metadata"]["uid"]] = gang
            if gang and ("Complete" in ends or "Failed" in ends):
                gang.finished = True

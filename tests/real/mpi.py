"""LAMMPS over the pods of a gang, one rank each: a real MPI program that works only when the whole gang is there."""

from pathlib import Path

IMAGE = "localhost/mpi:1"
MELT = Path(__file__).with_name("melt.in")

#: What each pod runs. The first pod waits for the list of hosts, which the test gives it once all of them run.
RANK = """
/usr/sbin/sshd -D -e &
if [ "$RANK" != 0 ]; then
	until [ -e /tmp/done ]; do sleep 0.2; done
	exit 0
fi
until [ -e /tmp/hosts ]; do sleep 0.2; done
mpirun --allow-run-as-root --bind-to none --mca mpi_yield_when_idle 1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \\
	--hostfile /tmp/hosts -np $(wc -l </tmp/hosts) lmp -in /tmp/melt.in -log none || exit 1
for host in $(cut -d' ' -f1 /tmp/hosts); do ssh "$host" touch /tmp/done; done
"""


#: The same as an MPIJob: hosts and keys are those its operator mounts, names are given by who plays the cluster's DNS.
SSH = "-p 2222 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
WORKER = "mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -p 2222"
LAUNCHER = f"""
until [ -e /tmp/names ]; do sleep 0.2; done
cat /tmp/names >>/etc/hosts
exec mpirun --allow-run-as-root --bind-to none --mca mpi_yield_when_idle 1 --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \\
	--mca plm_rsh_args "{SSH}" -np $RANKS lmp -log none </tmp/melt.in
"""


def mpijob(name, workers, namespace):
    """Launcher and workers, each worker with a node to itself."""
    def part(replicas, script, cpu, env=()):
        container = {"name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script], "env": list(env),
                     "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
        return {"replicas": replicas, "restartPolicy": "Never", "template": {"metadata": {"annotations": {"sluice.sh/duration": "10m"}}, "spec": {
            "schedulerName": "sluice", "terminationGracePeriodSeconds": 1, "containers": [container]}}}

    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": name, "namespace": namespace},
            "spec": {"slotsPerWorker": 1, "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0}, "mpiReplicaSpecs": {
                "Launcher": part(1, LAUNCHER, "100m", [{"name": "RANKS", "value": str(workers)}]), "Worker": part(workers, WORKER, "1500m")}}}  # fmt: skip


def tell_names(cluster, namespace, name, pods):
    """All pods of the MPIJob run: what the cluster's DNS would answer the launcher."""
    launcher = next(p for p in pods if "-launcher" in p["metadata"]["name"])
    names = "".join(f"{p['status']['podIP']} {p['metadata']['name']}.{name}.{namespace}.svc {p['metadata']['name']}\n" for p in pods if p is not launcher)
    cluster.kubectl("exec", "-n", namespace, launcher["metadata"]["name"], "--", "sh", "-c",
                    f"printf '{MELT.read_text()}' >/tmp/melt.in && printf '{names}' >/tmp/n && mv /tmp/n /tmp/names")
    return launcher["metadata"]["name"]


def pods(name, size, namespace, scheduler=None):
    """The pods of one run, without an object above them."""
    keys = {"sluice.sh/group": name, "sluice.sh/size": str(size)} if scheduler else {}
    return [{
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-{i}", "namespace": namespace, "labels": {"run": name, **keys}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **({"schedulerName": scheduler} if scheduler else {}), "containers": [{
            "name": "main", "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", RANK],
            "env": [{"name": "RANK", "value": str(i)}], "resources": {"requests": {"cpu": "1500m", "memory": "64Mi"}}}]},
    } for i in range(size)]  # fmt: skip


def members(cluster, namespace, name):
    """The pods of a run as they are, the first rank first."""
    there = [p for p in cluster.admin.list("pods", namespace) if p["metadata"].get("labels", {}).get("run") == name]
    return sorted(there, key=lambda p: p["metadata"]["name"])


def phases(cluster, namespace, name):
    return [p["status"].get("phase") for p in members(cluster, namespace, name)]


def begin(cluster, namespace, ranks):
    """All pods run: give the first one the list of the others."""
    hosts = "".join(f"{p['status']['podIP']} slots=1\n" for p in ranks)
    cluster.kubectl("exec", "-n", namespace, ranks[0]["metadata"]["name"], "--", "sh", "-c",
                    f"printf '{MELT.read_text()}' >/tmp/melt.in && printf '{hosts}' >/tmp/h && mv /tmp/h /tmp/hosts")

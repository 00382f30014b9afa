"""LAMMPS over the pods of a gang, one rank each: a real MPI program that works only when the whole gang is there."""

from pathlib import Path

IMAGE = "localhost/mpi:1"
MELT = Path(__file__).with_name("melt.in")

#: What each pod runs.  The first one waits for the list of hosts, which somebody gives it once all of them run.
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
    """All pods run: tell the first one where the others are."""
    hosts = "".join(f"{p['status']['podIP']} slots=1\n" for p in ranks)
    cluster.kubectl("exec", "-n", namespace, ranks[0]["metadata"]["name"], "--", "sh", "-c",
                    f"printf '{MELT.read_text()}' >/tmp/melt.in && printf '{hosts}' >/tmp/h && mv /tmp/h /tmp/hosts")

"""Every kind of write of the client, on a live API server (write_tool.c), and what the server made of it."""

import subprocess

from .mirror import tool


def test_writes(cluster, namespace):
    node = next(n["metadata"]["name"] for n in cluster.admin.list("nodes") if "taints" not in n["spec"])
    r = subprocess.run(
        [tool("write_tool"), cluster.kubeconfig, namespace, node, cluster.pki / "sluice.token"],
        capture_output=True, text=True, timeout=400,
    )
    print(r.stdout)
    assert r.returncode == 0 and "not ok" not in r.stdout, r.stdout + r.stderr
    events = cluster.admin.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    (event,) = [e for e in events if e.get("reason") == "Scheduled" and e["regarding"]["name"] == "a"]
    assert event["reportingController"] == "fluence" and event["reportingInstance"] == "fluence-0"
    assert event["note"] == 'placed "here"' and event["type"] == "Normal"
    lease = cluster.admin.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/leader")
    assert lease["spec"]["holderIdentity"] == "three" and lease["spec"]["leaseTransitions"] == 2

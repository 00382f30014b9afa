"""A small client of the Kubernetes API for tests: JSON, keep-alive connections, threads."""

import http.client
import json
import queue
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode, urlsplit

import yaml

from .patience import PATIENCE_S

PATCH_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class ApiError(Exception):
    """The server refused: `status` is the HTTP code, `reason` and `message` are the server's."""

    def __init__(self, status, body, what):
        self.status = status
        self.reason = body.get("reason", "") if isinstance(body, dict) else ""
        self.message = body.get("message", "") if isinstance(body, dict) else str(body)
        super().__init__(f"{what}: {status} {self.reason}: {self.message}")


class Api:
    """One user's view of one server.  Any thread may use it; each call takes a connection of its own."""

    def __init__(self, server, ca=None, cert=None, key=None, token=None, timeout=60):
        self.server = server
        url = urlsplit(server)
        self.host, self.port = url.hostname, url.port
        self.token = token
        self.timeout = timeout
        self.ssl = ssl.create_default_context(cafile=ca)
        if cert:
            self.ssl.load_cert_chain(cert, key)
        self._idle = queue.LifoQueue()
        self._resources = {}
        self._lock = threading.Lock()

    @classmethod
    def from_kubeconfig(cls, path, **options):
        conf = yaml.safe_load(open(path))
        context = next(c["context"] for c in conf["contexts"] if c["name"] == conf["current-context"])
        cluster = next(c["cluster"] for c in conf["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in conf["users"] if u["name"] == context["user"])
        token = open(user["tokenFile"]).read().strip() if "tokenFile" in user else user.get("token")
        return cls(
            cluster["server"],
            ca=cluster.get("certificate-authority"),
            cert=user.get("client-certificate"),
            key=user.get("client-key"),
            token=token,
            **options,
        )

    # -- requests ------------------------------------------------------------------------------

    def _connect(self, timeout=None):
        return http.client.HTTPSConnection(
            self.host, self.port, context=self.ssl, timeout=timeout or self.timeout
        )

    def _headers(self, content_type, accept="application/json"):
        headers = {"Accept": accept}
        if content_type:
            headers["Content-Type"] = content_type
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return headers

    def request(self, method, path, body=None, content_type="application/json", query=None, accept="application/json"):
        """One request; returns the decoded answer (text where it is not JSON), raises ApiError."""
        if query:
            path += "?" + urlencode(query)
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self._headers(content_type if data is not None else None, accept)
        while True:
            try:
                conn, used = self._idle.get_nowait(), True
            except queue.Empty:
                conn, used = self._connect(), False
            try:
                conn.request(method, path, body=data, headers=headers)
                answer = conn.getresponse()
                text = answer.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
                conn.close()
                if used:  # the server closed an idle connection; a fresh one decides
                    continue
                raise
            except http.client.HTTPException as e:
                conn.close()
                raise ConnectionError(f"{method} {path}: {e!r}") from e
            except BaseException:
                conn.close()
                raise
            if answer.will_close:
                conn.close()
            else:
                self._idle.put(conn)
            if answer.status == 429 and answer.headers.get("Retry-After"):
                time.sleep(float(answer.headers["Retry-After"]))
                continue
            kind = answer.headers.get("Content-Type", "")
            value = json.loads(text) if kind.startswith("application/json") and text else text.decode(errors="replace")
            if answer.status >= 300:
                raise ApiError(answer.status, value, f"{method} {path}")
            return value

    def close(self):
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return

    # -- kinds ---------------------------------------------------------------------------------

    def _discover(self):
        found = {}
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        for root in ("/api", "/apis"):
            for group in self.request("GET", root, accept=accept)["items"]:
                group_name = group.get("metadata", {}).get("name", "")
                for version in group["versions"]:
                    gv = f"{group_name}/{version['version']}" if group_name else version["version"]
                    base = f"/apis/{gv}" if group_name else f"/api/{gv}"
                    for r in version.get("resources", []):
                        entry = (base, r["resource"], r["scope"] == "Namespaced", gv, r["responseKind"]["kind"])
                        names = [r["resource"], r.get("singularResource", ""), entry[4], *r.get("shortNames", [])]
                        for name in filter(None, names):
                            for key in (name, f"{name}.{group_name}", (gv, name)):
                                found.setdefault(key, entry)
        self._resources = found

    def resource(self, kind, api_version=None):
        """(base path, plural, namespaced, apiVersion, kind) of "pods", "pod", "Pod", "po", "jobs.batch"..."""
        key = (api_version, kind) if api_version else kind
        with self._lock:
            if key not in self._resources:
                self._discover()
            if key not in self._resources:
                raise LookupError(f"the server knows no {key}")
            return self._resources[key]

    def path(self, kind, name=None, namespace=None, subresource=None, api_version=None):
        base, plural, namespaced, _, _ = self.resource(kind, api_version)
        path = base
        if namespaced and namespace is not None:
            path += f"/namespaces/{quote(namespace)}"
        path += f"/{plural}"
        if name:
            path += f"/{quote(name)}"
        if subresource:
            path += f"/{subresource}"
        return path

    def _place(self, obj):
        meta = obj["metadata"]
        namespaced = self.resource(obj["kind"], obj["apiVersion"])[2]
        return (meta.get("namespace") or "default") if namespaced else None

    # -- objects -------------------------------------------------------------------------------

    def get(self, kind, name, namespace="default"):
        return self.request("GET", self.path(kind, name, namespace))

    def list(self, kind, namespace=None, labels=None, fields=None):
        """All items; `namespace` None means every namespace."""
        return self.list_full(kind, namespace, labels, fields)["items"]

    def list_full(self, kind, namespace=None, labels=None, fields=None, **query):
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        return self.request("GET", self.path(kind, None, namespace), query=query)

    def create(self, obj):
        path = self.path(obj["kind"], None, self._place(obj), api_version=obj["apiVersion"])
        return self.request("POST", path, obj)

    def apply(self, obj, manager="sluice-test"):
        """Server-side apply."""
        path = self.path(obj["kind"], obj["metadata"]["name"], self._place(obj), api_version=obj["apiVersion"])
        return self.request(
            "PATCH", path, obj, PATCH_TYPES["apply"], query={"fieldManager": manager, "force": "true"}
        )

    def apply_file(self, path):
        """Apply every document of a YAML file; returns the objects."""
        with open(path) as f:
            return [self.apply(doc) for doc in yaml.safe_load_all(f) if doc]

    def patch(self, kind, name, patch, namespace="default", type="merge", subresource=None):
        return self.request("PATCH", self.path(kind, name, namespace, subresource), patch, PATCH_TYPES[type])

    def replace(self, obj, subresource=None):
        path = self.path(
            obj["kind"], obj["metadata"]["name"], self._place(obj), subresource, api_version=obj["apiVersion"]
        )
        return self.request("PUT", path, obj)

    def delete(self, kind, name, namespace="default", grace=None, propagation=None, missing_ok=False):
        options = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        if propagation:
            options["propagationPolicy"] = propagation
        try:
            return self.request("DELETE", self.path(kind, name, namespace), options)
        except ApiError as e:
            if not (missing_ok and e.status == 404):
                raise

    def delete_all(self, kind, namespace="default", labels=None, grace=None):
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        query = {"labelSelector": labels} if labels else None
        return self.request("DELETE", self.path(kind, None, namespace), options, query=query)

    def bind(self, name, node, namespace="default"):
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return self.request("POST", self.path("pods", name, namespace, "binding"), body)

    def map(self, function, items, workers=16):
        """function(item) for all items on several connections; the first error is raised."""
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(function, items))

    def create_many(self, objects, workers=16):
        return self.map(self.create, objects, workers)

    # -- watching ------------------------------------------------------------------------------

    def watch(self, kind, namespace=None, version=None, labels=None, fields=None, timeout=None, bookmarks=False,
              seconds=None):
        """Yield (type, object) from resourceVersion `version` on, until the server ends the watch (after
        `seconds` if given) or `timeout` seconds pass without an event.  An ERROR event is raised as ApiError."""
        query = {"watch": "true"}
        if version is not None:
            query["resourceVersion"] = version
        if labels:
            query["labelSelector"] = labels
        if fields:
            query["fieldSelector"] = fields
        if bookmarks:
            query["allowWatchBookmarks"] = "true"
        if seconds:
            query["timeoutSeconds"] = str(seconds)
        path = self.path(kind, None, namespace) + "?" + urlencode(query)
        conn = self._connect(timeout or 3600)
        try:
            conn.request("GET", path, headers=self._headers(None))
            answer = conn.getresponse()
            if answer.status >= 300:
                raise ApiError(answer.status, json.loads(answer.read() or b"{}"), f"watch {path}")
            while True:
                try:
                    line = answer.readline()
                except TimeoutError:
                    return
                except http.client.HTTPException as e:
                    raise ConnectionError(f"watch {path}: {e!r}") from e
                if not line.endswith(b"\n"):
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 500), event["object"], f"watch {path}")
                yield event["type"], event["object"]
        finally:
            conn.close()

    def wait(self, kind, name, test, namespace="default", interval=0.05):
        """The object as soon as test(object) holds; test(None) is asked while there is none."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                obj = self.get(kind, name, namespace)
            except ApiError as e:
                if e.status != 404:
                    raise
                obj = None
            if test(obj):
                return obj
            if time.monotonic() > end:
                state = obj and {"status": obj.get("status"), "spec.nodeName": obj.get("spec", {}).get("nodeName")}
                raise TimeoutError(f"{kind} {name}: not as expected after {PATIENCE_S:.0f} s; last seen {json.dumps(state)}")
            time.sleep(interval)

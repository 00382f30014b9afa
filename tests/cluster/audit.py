"""What the API server wrote down: bindings and requests, from its audit log.

A request that the server was answering when it was killed may be done and not in the log.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from .patience import PATIENCE_S


@dataclass(frozen=True)
class Binding:
    namespace: str
    pod: str
    node: str
    user: str
    code: int  # of HTTP; 201 is a binding that was made
    time: float  # when the server had answered, seconds since 1970

    @property
    def ok(self):
        return 200 <= self.code < 300


def _seconds(stamp):
    return datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


class Audit:
    """Reads on from where it stopped the last time; everything read is kept."""

    def __init__(self, path):
        self.path = path
        self._offset = 0
        self._bindings = []
        self._requests = Counter()

    def skip(self):
        """Leave out what has been written so far."""
        self._offset = self.path.stat().st_size
        return self

    def read(self):
        """Take in what has been written since."""
        with open(self.path, "rb") as f:
            f.seek(self._offset)
            data = f.read()
        end = data.rfind(b"\n") + 1
        self._offset += end
        for line in data[:end].splitlines():
            # A server killed while it wrote leaves half a line, and the next one begins right behind it.
            event = json.loads(line[max(line.rfind(b'{"kind":"Event"'), 0) :])
            if event.get("stage") not in ("ResponseComplete", "Panic"):
                continue
            ref = event.get("objectRef", {})
            resource, sub = ref.get("resource", ""), ref.get("subresource", "")
            user = event["user"]["username"]
            code = event.get("responseStatus", {}).get("code", 0)
            self._requests[user, event["verb"], f"{resource}/{sub}" if sub else resource, code] += 1
            if event["verb"] == "create" and (sub == "binding" or resource == "bindings"):
                body = event.get("requestObject") or {}
                self._bindings.append(
                    Binding(
                        ref.get("namespace", ""),
                        ref.get("name") or body.get("metadata", {}).get("name", ""),
                        body.get("target", {}).get("name", ""),
                        user,
                        code,
                        _seconds(event["stageTimestamp"]),
                    )
                )
        return self

    def bindings(self, namespace=None, user=None):
        """Every binding that was tried, in the order of the log."""
        self.read()
        return [
            b for b in self._bindings if (namespace or b.namespace) == b.namespace and (user or b.user) == b.user
        ]

    def bound(self, namespace=None):
        """Counter of bindings made per (namespace, pod)."""
        return Counter((b.namespace, b.pod) for b in self.bindings(namespace) if b.ok)

    def bound_twice(self, namespace=None):
        """Pods that were bound more than once.  A name that was used again counts as the same pod."""
        return {pod: n for pod, n in self.bound(namespace).items() if n > 1}

    def requests(self, user=None):
        """Counter of (verb, resource[/subresource], code), of one user or of all."""
        self.read()
        counts = Counter()
        for (who, *what), n in self._requests.items():
            if user is None or who == user:
                counts[tuple(what)] += n
        return counts

    def wait(self, test):
        """Read until test(self) holds: the last lines may come a moment after the answer."""
        end = time.monotonic() + PATIENCE_S
        while not test(self.read()):
            if time.monotonic() > end:
                raise TimeoutError(f"{self.path} does not say so after {PATIENCE_S:.0f} s")
            time.sleep(0.05)
        return self

    def spread(self, groups):
        """{group: seconds from its first to its last binding} for {group: [(namespace, pod), ...]}."""
        times = {}
        for b in self.bindings():
            if b.ok:
                times.setdefault((b.namespace, b.pod), b.time)
        result = {}
        for group, pods in groups.items():
            seen = [times[p] for p in pods if p in times]
            if seen:
                result[group] = max(seen) - min(seen)
        return result

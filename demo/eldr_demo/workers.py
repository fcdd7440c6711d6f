# SPDX-License-Identifier: Apache-2.0
"""What the simulated decode workers counted: which worker served which domain, and how many experts a step read."""

import json
import urllib.request


class Workers:
    def __init__(self, kubectl, access, selector="app=decode", port=8000):
        self.kubectl, self.access, self.selector, self.port = kubectl, access, selector, port

    def pods(self):
        """Ready pods, by cluster id then name."""
        return sorted(
            self.kubectl.ready_pods(self.selector),
            key=lambda pod: (cluster_id(pod) is None, cluster_id(pod) or 0, pod["metadata"]["name"]),
        )

    def stats(self):
        """[(pod, statistics)] of every ready pod."""
        return [(pod, self._call(pod, "GET", "/sim/stats")) for pod in self.pods()]

    def reset(self):
        for pod in self.pods():
            self._call(pod, "POST", "/sim/reset")

    def _call(self, pod, method, path):
        request = urllib.request.Request(
            self.access.pod(pod, self.port) + path,
            method=method,
            data=b"" if method == "POST" else None,
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else {}


def cluster_id(pod):
    text = pod["metadata"].get("labels", {}).get("eldr.dev/cluster")
    return int(text) if text is not None else None

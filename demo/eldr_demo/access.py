# SPDX-License-Identifier: Apache-2.0
"""How this machine reaches Services and pods: directly on the local cluster, else through the API server (kubectl proxy)."""

import re
import subprocess


class DirectAccess:
    """Pod and service addresses of the local cluster are routed on this machine."""

    def service(self, service, port):
        return f"http://{service['spec']['clusterIP']}:{port}"

    def pod(self, pod, port):
        return f"http://{pod['status']['podIP']}:{port}"

    def close(self):
        pass


class ProxyAccess:
    """Somebody else's cluster: its addresses are its own, but its API server forwards. Owns a `kubectl proxy` process."""

    def __init__(self, kubectl):
        self._process = subprocess.Popen(
            [kubectl.program, "--kubeconfig", kubectl.kubeconfig, "proxy", "--port=0"],
            stdout=subprocess.PIPE,
            text=True,
        )
        said = self._process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        if not found:
            self.close()
            raise SystemExit(f"demo: kubectl proxy did not start: {said.strip() or 'it said nothing'}")
        self._base = f"http://127.0.0.1:{found[1]}/api/v1/namespaces"

    def service(self, service, port):
        meta = service["metadata"]
        return f"{self._base}/{meta['namespace']}/services/{meta['name']}:{port}/proxy"

    def pod(self, pod, port):
        meta = pod["metadata"]
        return f"{self._base}/{meta['namespace']}/pods/{meta['name']}:{port}/proxy"

    def close(self):
        self._process.terminate()
        self._process.wait(timeout=10)


def access_to(cluster, kubectl):
    return ProxyAccess(kubectl) if cluster.external else DirectAccess()

# SPDX-License-Identifier: Apache-2.0
"""kubectl as a few typed calls. Every call has a deadline."""

import json
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class KubectlError(Exception):
    pass


class Kubectl:
    def __init__(self, kubeconfig, namespace="serving"):
        built = ROOT / "build" / "cluster" / "bin" / "kubectl"
        self.program = str(built) if built.exists() else shutil.which("kubectl")
        if self.program is None:
            raise SystemExit("demo: no kubectl: run tests/cluster/build or install one")
        self.kubeconfig = str(kubeconfig)
        self.namespace = namespace

    def run(self, *args, stdin=None, timeout=60, check=True):
        # Manifests name their own namespace.
        where = [] if args[0] == "apply" or "-k" in args else ["--namespace", self.namespace]
        command = [self.program, "--kubeconfig", self.kubeconfig, *where, *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout)
        if check and done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, kind, name):
        """The object, or None when there is none of that name."""
        text = self.run("get", kind, name, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind, selector=""):
        args = ["get", kind, "-o", "json"] + (["-l", selector] if selector else [])
        return json.loads(self.run(*args))["items"]

    def ready_pods(self, selector):
        """Pods that take requests: neither ending nor unready."""
        return [
            pod
            for pod in self.list("pods", selector)
            if not pod["metadata"].get("deletionTimestamp")
            and any(
                c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", [])
            )
        ]

    def apply(self, text):
        return self.run("apply", "-f", "-", stdin=text)

    def patch(self, kind, name, patch):
        return self.run("patch", kind, name, "--type=merge", "-p", json.dumps(patch))

    def wait(self, condition, deadline_s, every_s=0.5, what="the condition"):
        """Calls `condition` until it returns something true, and returns that; None after the deadline."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            try:
                found = condition()
            except (KubectlError, subprocess.TimeoutExpired):
                found = None  # an API server that is restarting: ask again
            if found:
                return found
            time.sleep(every_s)
        return None

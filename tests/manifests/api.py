# SPDX-License-Identifier: Apache-2.0
"""kubectl against the API server of ELDR_TEST_KUBECONFIG (scripts/test starts one)."""

import json
import os
import shutil
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MANIFESTS = ROOT / "manifests"
KUBECONFIG = os.environ.get("ELDR_TEST_KUBECONFIG", "")


def kubectl(*arguments, stdin=None, check=True):
    built = ROOT / "build" / "cluster" / "bin" / "kubectl"
    program = str(built) if built.exists() else shutil.which("kubectl")
    if program is None:
        raise unittest.SkipTest("needs kubectl: tests/cluster/build makes one")
    command = [program, "--kubeconfig", KUBECONFIG, *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)
    if check and done.returncode != 0:
        raise AssertionError(f"kubectl {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done


def accepted(path, namespace=None):
    """The objects of a file or a kustomization as the API server would store them, defaults filled in. Unknown fields are errors."""
    where = ["-k" if path.is_dir() else "-f", path]
    if namespace:
        where += ["--namespace", namespace]
    text = kubectl("apply", *where, "--dry-run=server", "--validate=strict", "--output=json").stdout
    found = json.loads(text)
    return found["items"] if found["kind"] == "List" else [found]


class ApiTest(unittest.TestCase):
    """Installs the CRD and makes the namespaces that manifests name, and removes the namespaces that it made."""

    namespaces = ("eldr-system", "serving")

    @classmethod
    def setUpClass(cls):
        if not KUBECONFIG:
            raise unittest.SkipTest(
                "needs an API server: ELDR_TEST_KUBECONFIG is not set (scripts/test sets it)"
            )
        kubectl("apply", "--server-side", "--force-conflicts", "-k", ROOT / "crds")
        kubectl("wait", "--for=condition=Established", "crd/eldrpolicies.eldr.dev", "--timeout=60s")
        for name in cls.namespaces:
            # An earlier test's namespace may still be on its way out, and takes nothing new until it is gone.
            phase = kubectl("get", "namespace", name, "--output=jsonpath={.status.phase}", check=False).stdout
            if phase == "Terminating":
                kubectl("wait", "--for=delete", f"namespace/{name}", "--timeout=100s")
            if kubectl("create", "namespace", name, check=False).returncode == 0:
                cls.addClassCleanup(kubectl, "delete", "namespace", name, "--wait=false")

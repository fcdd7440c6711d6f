#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manifests/overlays/namespaced: the operator works in its namespace with the rights that the overlay gives, and has none elsewhere."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import total  # noqa: E402
from manifests.api import MANIFESTS, ROOT, ApiTest, accepted, kubectl  # noqa: E402

PROGRAM = Path(os.environ.get("ELDR_BIN", ROOT / "build" / "bin")) / "eldr-operator"
RIGHTS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
ACCOUNT = "system:serviceaccount:eldr-system:eldr-operator"
OWN, OTHER = "serving", "eldr-elsewhere"


def policy(namespace):
    return {
        "apiVersion": "eldr.dev/v1alpha1",
        "kind": "EldrPolicy",
        "metadata": {"name": "rights", "namespace": namespace},
        "spec": {
            "model": {"name": "m"},
            "dataset": {"configMap": {"name": "none", "key": "prompts.jsonl"}},
            "prefill": {"selector": {"matchLabels": {"app": "prefill"}}},
            "decode": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"}},
            "calibration": {"engine": {"service": {"url": "http://engine:8000"}}},
        },
    }


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    return condition()


class Operator:
    """eldr-operator as its service account."""

    def __init__(self, kubeconfig, *arguments):
        self.port = free_port()
        command = [PROGRAM, "--kubeconfig", kubeconfig, "--metrics-address", "", *arguments]
        command.append(f"--health-address=127.0.0.1:{self.port}")
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)

    def readiness(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, f"{error}: {self.said()}"

    def said(self):
        self.log.seek(0)
        return self.log.read()[-2000:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class NamespacedTest(ApiTest):
    namespaces = ("eldr-system", OWN, OTHER)

    @classmethod
    def setUpClass(cls):
        if os.environ.get("ELDR_KUBECONFIG"):
            raise unittest.SkipTest("would change rights in the cluster of ELDR_KUBECONFIG")
        super().setUpClass()
        if not PROGRAM.exists():
            raise unittest.SkipTest(f"needs {PROGRAM}")
        for found in accepted(MANIFESTS / "overlays" / "namespaced"):
            if found["kind"] in RIGHTS:
                for field in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
                    found["metadata"].pop(field, None)
                kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(found))
                cls.addClassCleanup(kubectl, "delete", "-f", "-", stdin=json.dumps(found), check=False)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.kubeconfig = Path(folder.name) / "kubeconfig"
        cls.kubeconfig.write_text(json.dumps(cls.kubeconfig_of_account()))

    @staticmethod
    def kubeconfig_of_account():
        config = json.loads(kubectl("config", "view", "--raw", "--flatten", "--output=json").stdout)
        token = kubectl("create", "token", "eldr-operator", "--namespace=eldr-system").stdout.strip()
        config["users"] = [{"name": "operator", "user": {"token": token}}]
        for context in config["contexts"]:
            context["context"]["user"] = "operator"
        return config

    def start(self, *arguments):
        operator = Operator(self.kubeconfig, *arguments)
        self.addCleanup(operator.stop)
        return operator

    def test_rights_end_at_the_namespace(self):
        for verb, what in (
            ("list", "eldrpolicies"),
            ("create", "jobs"),
            ("patch", "pods"),
            ("delete", "configmaps"),
        ):
            for namespace, allowed in ((OWN, "yes"), (OTHER, "no"), ("eldr-system", "no")):
                said = kubectl(
                    "auth", "can-i", verb, what, "--namespace", namespace, "--as", ACCOUNT, check=False
                ).stdout.strip()
                self.assertEqual(said, allowed, f"{verb} {what} in {namespace}")

    def test_the_operator_works_there_and_only_there(self):
        for namespace in (OWN, OTHER):
            kubectl("apply", "-f", "-", stdin=json.dumps(policy(namespace)))
            self.addCleanup(
                kubectl, "delete", "eldrpolicy", "rights", "--namespace", namespace, "--wait=false"
            )
        operator = self.start(f"--namespaces={OWN}")
        self.assertTrue(wait_for(lambda: operator.readiness()[0] == 200, 30), operator.readiness())

        def conditions(namespace):
            found = kubectl("get", "eldrpolicy", "rights", "--namespace", namespace, "--output=json").stdout
            return {c["type"]: c["status"] for c in json.loads(found).get("status", {}).get("conditions", [])}

        self.assertTrue(wait_for(lambda: "Ready" in conditions(OWN), 30), conditions(OWN))
        self.assertEqual(conditions(OWN)["Accepted"], "True")
        self.assertEqual(conditions(OTHER), {})

    def test_without_the_option_it_says_what_it_may_not(self):
        operator = self.start()

        def says_so():
            status, text = operator.readiness()
            return status == 503 and "forbidden" in text and text

        self.assertTrue(wait_for(says_so, 30), operator.readiness())


if __name__ == "__main__":
    sys.exit(total.run())

# SPDX-License-Identifier: Apache-2.0
"""Installs what the story needs: the operator, workers, prompts, a volume for traces."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MANIFESTS = ROOT / "demo" / "manifests"


def install_operator(kubectl, console):
    kubectl.run("apply", "-k", str(ROOT / "manifests" / "overlays" / "local"))
    kubectl.run("wait", "--for=condition=Established", "crd/eldrpolicies.eldr.dev", "--timeout=30s")

    def rolled_out():
        found = json.loads(
            kubectl.run("get", "deployment", "eldr-operator", "-n", "eldr-system", "-o", "json")
        )
        status = found.get("status", {})
        return status.get("readyReplicas", 0) >= 1

    return console.claim(
        "the operator is installed and ready", bool(kubectl.wait(rolled_out, 60, what="operator"))
    )


def make_prompts(seed, folder, count=400):
    """The path of a JSON-lines file of labelled prompts: real ones where ELDR_REAL_DATA is set, else the project's own."""
    folder.mkdir(parents=True, exist_ok=True)
    out = folder / f"prompts-{seed}.jsonl"
    script = "real.py" if os.environ.get("ELDR_REAL_DATA") else "generate.py"
    command = [
        sys.executable,
        str(ROOT / "tests" / "prompts" / script),
        "--count",
        str(count),
        "--seed",
        str(seed),
        "--out",
        str(out),
    ]
    subprocess.run(command, check=True)
    return out


def read_prompts(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def put_prompts(kubectl, path, name="prompts"):
    """Creates or replaces the ConfigMap of prompts. Server-side apply: no annotation doubles its size."""
    text = kubectl.run(
        "create", "configmap", name, f"--from-file=prompts.jsonl={path}", "--dry-run=client", "-o", "json"
    )
    kubectl.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def install_workers(kubectl, cluster):
    if not cluster.external:
        _trace_volume(kubectl, cluster)
    text = (MANIFESTS / "workers.yaml").read_text()
    if cluster.external:  # somebody else's cluster has a storage class of its own
        text = text.replace('  storageClassName: ""\n', "").replace("  volumeName: eldr-traces\n", "")
    kubectl.apply(text)


def _trace_volume(kubectl, cluster):
    folder = cluster.state / "traces"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    kubectl.apply(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "eldr-traces"},
                "spec": {
                    "capacity": {"storage": "100Mi"},
                    "accessModes": ["ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "storageClassName": "",
                    "hostPath": {"path": str(folder), "type": "Directory"},
                },
            }
        )
    )


def apply_policy(kubectl, cluster):
    text = (MANIFESTS / "policy.yaml").read_text()
    if cluster.external and not kubectl.list("storageclasses"):
        text = re.sub(r"^    cache:.*\n", "", text, flags=re.MULTILINE)  # nothing would provide the volume
    kubectl.apply(text)


def uninstall(kubectl):
    """Takes everything out of a cluster that goes on living."""
    kubectl.run(
        "delete", "namespace", "serving", "--ignore-not-found", "--timeout=120s", timeout=150, check=False
    )
    kubectl.run(
        "delete",
        "-k",
        str(ROOT / "manifests" / "overlays" / "local"),
        "--ignore-not-found",
        timeout=150,
        check=False,
    )

# SPDX-License-Identifier: Apache-2.0
"""The local Kubernetes (tests/cluster) and kubectl. Every call has a deadline."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ROOT / "tests" / "cluster"
NAMESPACE = "serving"
Object = dict[str, Any]


def run(command: Sequence[str | Path], *, stdin: str | None = None, timeout: float = 120) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(str(w) for w in command)}: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout


class Cluster:
    """`state` holds everything that the cluster writes."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def start(self, images: Sequence[Path]) -> None:
        run([TOOLS / "up", self.state], timeout=300)
        run([TOOLS / "load", self.state, *images], timeout=600)

    def stop(self) -> None:
        run([TOOLS / "down", self.state], timeout=180)

    def kubectl(
        self,
        *arguments: str | Path,
        stdin: str | None = None,
        namespace: str = NAMESPACE,
        timeout: float = 60,
    ) -> str:
        program = ROOT / "build" / "cluster" / "bin" / "kubectl"
        config = self.state / "admin.kubeconfig"
        where = [] if "-k" in arguments else ["--namespace", namespace]
        return run([program, "--kubeconfig", config, *where, *arguments], stdin=stdin, timeout=timeout)

    def apply(self, *objects: Object) -> None:
        self.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-",
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}),
        )  # fmt: skip

    def get(self, kind: str, name: str) -> Object:
        found: Object = json.loads(self.kubectl("get", kind, name, "--output=json"))
        return found

    def list(self, kind: str, selector: str = "") -> list[Object]:
        text = self.kubectl("get", kind, "--output=json", f"--selector={selector}")
        items: list[Object] = json.loads(text)["items"]
        return items

    def save_evidence(self, folder: Path) -> None:
        """What a person would look at after a failure."""
        questions = {
            "objects.txt": ("get", "pods,jobs,deployments,configmaps,services", "-A", "--output=wide"),
            "policy.yaml": ("get", "eldrpolicies", "-A", "--output=yaml"),
            "pods.txt": ("describe", "pods"),
            "events.txt": ("get", "events", "-A", "--sort-by=.metadata.creationTimestamp"),
        }
        for name, arguments in questions.items():
            self._save(folder / name, *arguments)
        for pod in self.list("pods"):
            name = pod["metadata"]["name"]
            logs = ("logs", name, "--all-containers", "--prefix", "--tail=3000")
            self._save(folder / f"{name}.log", *logs)
            self._save(folder / f"{name}.previous.log", *logs, "--previous")

    def _save(self, file: Path, *arguments: str) -> None:
        try:
            file.write_text(self.kubectl(*arguments))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            file.write_text(str(error))


def is_ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return "deletionTimestamp" not in pod["metadata"] and any(
        c["type"] == "Ready" and c["status"] == "True" for c in conditions
    )

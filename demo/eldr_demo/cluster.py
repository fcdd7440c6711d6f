# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping the cluster that the demonstration runs on (tests/cluster, or the one of ELDR_KUBECONFIG)."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "tests" / "cluster"
IMAGES = ("operator", "router", "calibrate", "sim-worker")


class Cluster:
    """A running cluster. `state` holds everything that it writes; `external` is True for somebody else's."""

    def __init__(self, state):
        self.state = Path(state)
        self.external = bool(os.environ.get("ELDR_KUBECONFIG"))
        self.kubeconfig = self.state / "admin.kubeconfig"

    def start(self):
        for tool, *args in (
            ["build"],
            ["up", str(self.state)],
            ["load", str(self.state), *self._image_files()],
        ):
            code = subprocess.run([str(TOOLS / tool), *args]).returncode
            if code != 0:
                raise SystemExit(code)  # the tool has said what is missing

    def stop(self):
        subprocess.run([str(TOOLS / "down"), str(self.state)], check=False)
        shutil.rmtree(self.state, ignore_errors=True)

    def _image_files(self):
        files = [ROOT / "build" / "images" / f"{name}.tar" for name in IMAGES]
        missing = [str(file) for file in files if not file.exists()]
        if missing:
            raise SystemExit(f"demo: {missing[0]} is missing: run make images")
        return [str(file) for file in files]

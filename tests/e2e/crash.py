# SPDX-License-Identifier: Apache-2.0
"""A crash as it happens: SIGKILL to the process of one container, with no grace and no goodbye to the API server."""

import os
import signal
from pathlib import Path


def kill_container(kubectl, pod, program):
    """Kills `program` in `pod`. True when the process was found on this machine; elsewhere the pod is deleted by force, which is milder."""
    uid = pod["metadata"]["uid"]
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            in_pod = uid in (process / "cgroup").read_text()
            command = (process / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        if in_pod and command.endswith(program):
            os.kill(int(process.name), signal.SIGKILL)
            return True
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    kubectl.run("delete", "pod", name, "-n", namespace, "--grace-period=0", "--force")
    return False

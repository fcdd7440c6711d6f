# SPDX-License-Identifier: Apache-2.0
"""For tests on few CPU cores only: keeps vLLM and NIXL from spinning. Does nothing unless ELDR_CPU_POLITE=1.
Never use it to serve.

An entry of `vllm.general_plugins`, so vLLM calls register() in each of its processes.

1. A NIXL agent's UCX progress thread burns a whole core: it is switched off.
2. vLLM's shared-memory queue spins for a second after each message, then waits for a ping that can get lost
   and looks again only every 5 s: it sleeps shortly instead.
"""

from __future__ import annotations

import os
import time
from typing import Any


def register() -> None:
    """Safe to call more than once."""
    if os.environ.get("ELDR_CPU_POLITE") != "1":
        return
    _quiet_queue()
    _quiet_nixl()


def _quiet_queue() -> None:
    try:
        from vllm.distributed.device_communicators import shm_broadcast
    except ImportError:
        return
    condition = getattr(shm_broadcast, "SpinCondition", None)
    if condition is None:
        return
    shm_broadcast.SPINLOOP_EXT_ENABLED = False

    def wait(self: Any, timeout_ms: float | None = None) -> None:
        idle = time.monotonic() - self.last_read
        if idle < 0.05:
            time.sleep(0.0002)
        elif self.read_cancel_socket in dict(self.poller.poll(timeout=2 if idle < 5 else 20)):
            return
        elif self.local_notify_socket.poll(0):
            self.local_notify_socket.recv(copy=False)

    condition.wait = wait


def _quiet_nixl() -> None:
    try:
        from nixl import _api
    except ImportError:
        return
    original = _api.nixl_agent_config.__init__
    if getattr(original, "_eldr_quiet", False):
        return

    def quiet(self: Any, enable_prog_thread: bool = False, *args: Any, **kwargs: Any) -> None:
        original(self, False, *args, **kwargs)

    quiet._eldr_quiet = True  # type: ignore[attr-defined]
    _api.nixl_agent_config.__init__ = quiet

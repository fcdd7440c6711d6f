# SPDX-License-Identifier: Apache-2.0
"""Starts and stops real vLLM servers on free local ports, and talks to them. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asking

PLUGIN = ("--scheduler-cls", "eldr_vllm.scheduler.EldrScheduler")
"""Half of the line that switches counting on; transfer_config() is the other."""
HANDED_OVER: dict[str, Any] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}


ENGINE_FAILED = "EngineCore failed to start"
"""What vLLM logs when its engine ends before it can serve."""


def eldr_connector(**options: Any) -> dict[str, Any]:
    config: dict[str, Any] = {
        "kv_connector": "EldrConnector",
        "kv_connector_module_path": "eldr_vllm.connector",
        "kv_role": "kv_producer",
    }
    if options:
        config["kv_connector_extra_config"] = options
    return config


def nixl_connector(role: str = "kv_both", **options: Any) -> dict[str, Any]:
    config: dict[str, Any] = {"kv_connector": "NixlConnector", "kv_role": role}
    if options:
        config["kv_connector_extra_config"] = options
    return config


def multi_connector(*children: dict[str, Any]) -> dict[str, Any]:
    return {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"connectors": list(children)},
    }


def transfer_config(config: dict[str, Any]) -> tuple[str, str]:
    return "--kv-transfer-config", json.dumps(config)


_GIVEN: set[int] = set()


def free_port() -> int:
    """A port that nobody listens at, and that stays free for the half minute until its server listens: not
    one that the kernel gives to outgoing connections, and not one that was given before."""
    bounds = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    ephemeral = range(int(bounds[0]), int(bounds[1]) + 1)
    candidates = [port for port in range(10240, 65536) if port not in ephemeral and port not in _GIVEN]
    random.shuffle(candidates)
    for port in candidates or [0]:
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            found: int = s.getsockname()[1]
            _GIVEN.add(found)
            return found
    raise OSError("no port is free")


def tied_to_us() -> list[str]:
    """What a command begins with whose process is to get SIGTERM when this process dies without a word."""
    return ["setpriv", "--pdeathsig", "TERM", "--"] if shutil.which("setpriv") else []


def end_with_cleanup_on_sigterm() -> None:
    """SIGTERM then unwinds the stack as Ctrl-C does, so that servers in `with` and `finally` end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Refused(RuntimeError):
    """The server ended before it was healthy; `log` is what it wrote."""

    def __init__(self, log: str) -> None:
        super().__init__(log[-3000:])
        self.log = log


class Server:
    """One `vllm serve` with its children. Use as a context manager: all its processes end with it."""

    def __init__(
        self,
        python: str | Path,
        model: str | Path,
        log: Path,
        arguments: Sequence[str] = (),
        *,
        port: int | None = None,
        eager: bool = True,
        kv_space_gib: str = "1",
        max_model_len: int = 2048,
        environment: dict[str, str] | None = None,
        dtype: str = "float32",
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        side_port = free_port()
        command = [
            *tied_to_us(), "nice", "-n", "5", str(Path(python).parent / "vllm"), "serve", str(model),
            "--host", "127.0.0.1", "--port", str(self.port), "--served-model-name", "tiny",
            "--max-model-len", str(max_model_len), "--dtype", dtype,
        ]  # fmt: skip
        if eager:
            command.append("--enforce-eager")
        env = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_KVCACHE_SPACE": kv_space_gib,
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "ELDR_CPU_POLITE": "1",
            "VLLM_NIXL_SIDE_CHANNEL_HOST": "127.0.0.1",
            "VLLM_NIXL_SIDE_CHANNEL_PORT": str(side_port),
            "UCX_TLS": "tcp,self,sm",
            "UCX_NET_DEVICES": "lo",
            "NO_COLOR": "1",
            **(environment or {}),
        }
        self._file = log.open("w")
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdout=self._file,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )

    def wait(self, seconds: float = 600) -> Server:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is None and ENGINE_FAILED in self.log.read_text():
                # Now and then vLLM's front misses that its engine died, and waits for it 10 minutes more.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(30)
                self.stop()
            if self.process.poll() is not None:
                self.stop()
                raise Refused(self.log.read_text())
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=2):
                    return self
            except (OSError, urllib.error.URLError):
                time.sleep(0.5)
        self.stop()
        raise TimeoutError(f"no /health after {seconds} s:\n{self.log.read_text()[-3000:]}")

    def __enter__(self) -> Server:
        return self.wait()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, sig: int = signal.SIGTERM, seconds: float = 15) -> None:
        """Ends the server and every process of its group."""
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, sig)
            self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._file.close()

    # ------------------------------------------------------------ requests
    def post(
        self, path: str, body: dict[str, Any], timeout: float = 120, headers: dict[str, str] | None = None
    ) -> dict[str, Any]:
        return asking.post(self.url + path, body, timeout, headers)[0]

    def get(self, path: str) -> str:
        return asking.get(self.url + path)

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        return asking.metric(self.url, name)

    def prefill(
        self, prompt: Sequence[int], layers: Sequence[int] | None = None, max_tokens: int = 1, **more: Any
    ) -> dict[str, Any]:
        """The prefill leg of a request; the value of kv_transfer_params.eldr."""
        params: dict[str, Any] = dict(HANDED_OVER)
        if layers is not None:
            params["eldr"] = {"layers": list(layers)}
        body = {
            "model": "tiny",
            "prompt": list(prompt),
            "max_tokens": max_tokens,
            "temperature": 0,
            "kv_transfer_params": params,
            **more,
        }
        answer = self.post("/v1/completions", body)
        eldr: dict[str, Any] = (answer.get("kv_transfer_params") or {}).get("eldr") or {}
        return eldr

    def prefill_all(
        self, prompts: Sequence[Sequence[int]], concurrency: int, **more: Any
    ) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(lambda prompt: self.prefill(prompt, **more), prompts))

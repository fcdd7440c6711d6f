# SPDX-License-Identifier: Apache-2.0
"""eldr-router as a process, and a prefill worker whose answers can be held back."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import asking
from serving import free_port, tied_to_us

Headers = dict[str, str]


class Router:
    """With a configuration file of its own, on free ports. Decode worker i has cluster i."""

    def __init__(
        self, program: Path, folder: Path, centroids: Path, prefill: str, decode: Sequence[str], tau: float
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port, self.admin_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = {
            "listen": f"127.0.0.1:{self.port}",
            "admin": f"127.0.0.1:{self.admin_port}",
            "centroids": str(centroids),
            "routing": {"policy": "LocalityBand", "tau": tau, "prefillPolicy": "PrefixHash"},
            "prefill": [{"url": prefill}],
            "decode": [{"url": url, "cluster": i} for i, url in enumerate(decode)],
        }
        path = folder / "router.yaml"
        path.write_text(json.dumps(config))  # JSON is YAML
        self._log = (folder / "router.log").open("w")
        self.process = subprocess.Popen(
            [*tied_to_us(), str(program), "--config", str(path)], stdout=self._log, stderr=subprocess.STDOUT
        )

    def wait(self, seconds: float = 30) -> Router:
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError):
                self.admin("/readyz")
                return self
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("eldr-router is not ready; see router.log")
            time.sleep(0.2)

    def __enter__(self) -> Router:
        return self.wait()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def admin(self, path: str) -> str:
        return asking.get(f"http://127.0.0.1:{self.admin_port}{path}")

    def samples(self, name: str) -> dict[str, float]:
        """A metric's samples by their labels, which look like `path="/v1/completions",code="200"`."""
        found = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", self.admin("/metrics"), re.MULTILINE)
        return {labels: float(value) for labels, value in found}

    def post(self, path: str, body: dict[str, Any], timeout: float = 300) -> tuple[dict[str, Any], Headers]:
        return asking.post(self.url + path, body, timeout, asking.DEBUG)

    def open(self, path: str, body: dict[str, Any]) -> http.client.HTTPConnection:
        """A request whose answer the caller reads, or does not wait for."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.request(
            "POST",
            path,
            json.dumps(body),
            {"Content-Type": "application/json", **asking.DEBUG},
        )
        return connection

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()


class HeldPrefill:
    """Stands before a prefill worker and keeps its answer until release(): what happens meanwhile happens
    between the legs of a request."""

    def __init__(self, worker: str) -> None:
        self.answered, self._released = threading.Event(), threading.Event()
        held = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = urllib.request.Request(
                    worker + self.path, body, {"Content-Type": self.headers["Content-Type"]}
                )
                with urllib.request.urlopen(request, timeout=300) as response:
                    answer = response.read()
                held.answered.set()
                held._released.wait(300)
                with contextlib.suppress(OSError):  # the router may have left
                    self.send_response(200)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def release(self) -> None:
        self._released.set()

    def __enter__(self) -> HeldPrefill:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()

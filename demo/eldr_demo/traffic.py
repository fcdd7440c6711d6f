# SPDX-License-Identifier: Apache-2.0
"""Streamed completions through the router, at a fixed concurrency, each watched to its last byte."""

import asyncio
import json
import random
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Results:
    completed: int = 0
    tokens: int = 0
    failures: list = field(default_factory=list)
    first_token_s: list = field(default_factory=list)
    per_token_s: list = field(default_factory=list)

    def median(self, values):
        ordered = sorted(values)
        return ordered[len(ordered) // 2] if ordered else float("nan")


class Traffic:
    """Runs in its own thread until `stop`, or until `requests` have been sent. `prompts` are {"prompt", "label"}."""

    def __init__(self, url, model, prompts, concurrency, max_tokens, requests=None, seed=0, deadline_s=60):
        self.url, self.model, self.prompts = urlsplit(url), model, prompts
        self.concurrency, self.max_tokens, self.requests, self.deadline_s = (
            concurrency,
            max_tokens,
            requests,
            deadline_s,
        )
        self.results = Results()
        self._random = random.Random(seed)
        self._sent = 0
        self._stopping = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def start(self):
        self._thread.start()
        return self

    def stop(self):
        """Lets running requests end, then returns the results."""
        self._stopping = True
        return self.join()

    def join(self):
        self._thread.join(timeout=self.deadline_s * 4 + (self.requests or 0))
        return self.results

    async def _run(self):
        await asyncio.gather(*(self._client() for _ in range(self.concurrency)))

    async def _client(self):
        while not self._stopping and (self.requests is None or self._sent < self.requests):
            self._sent += 1
            prompt = self._random.choice(self.prompts)
            try:
                await asyncio.wait_for(self._request(prompt), self.deadline_s)
            except (
                OSError,
                ValueError,
                asyncio.TimeoutError,
                asyncio.IncompleteReadError,
                EOFError,
            ) as error:
                self.results.failures.append(f"{time.strftime('%H:%M:%S')} {type(error).__name__}: {error}")
                await asyncio.sleep(0.2)

    async def _request(self, prompt):
        body = json.dumps(
            {"model": self.model, "prompt": prompt["prompt"], "max_tokens": self.max_tokens, "stream": True}
        ).encode()
        head = (
            f"POST {self.url.path.rstrip('/')}/v1/completions HTTP/1.1\r\nHost: {self.url.hostname}\r\nContent-Type: application/json\r\n"
            f"X-Sim-Label: {prompt['label']}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        ).encode()
        started = time.monotonic()
        reader, writer = await asyncio.open_connection(self.url.hostname, self.url.port or 80)
        try:
            writer.write(head + body)
            await writer.drain()
            status = (await reader.readline()).decode(errors="replace").split(" ")
            if len(status) < 2:
                raise EOFError("connection closed before the status line")
            if status[1] != "200":
                raise ValueError(
                    f"HTTP {status[1]}: {(await reader.read(400)).decode(errors='replace')[-200:]}"
                )
            first = last = None
            tokens, done = 0, False
            async for line in reader:
                if line.startswith(b"data: [DONE]"):
                    done = True
                elif line.startswith(b"data: "):
                    last = time.monotonic()
                    first = first or last
                    tokens += 1
            if not done:
                raise EOFError(f"the stream ended after {tokens} tokens without [DONE]")
            self.results.completed += 1
            self.results.tokens += tokens
            self.results.first_token_s.append(first - started)
            if tokens > 1:
                self.results.per_token_s.append((last - first) / (tokens - 1))
        finally:
            writer.close()

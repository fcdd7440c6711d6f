# SPDX-License-Identifier: Apache-2.0
"""The checks of `run`: calibrate on a real engine, route through real prefill and decode workers, break
things. Run by `run`."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from serving import (
    PLUGIN,
    Server,
    eldr_connector,
    free_port,
    multi_connector,
    nixl_connector,
    transfer_config,
)
from tinymoe import prompts

ANSWER_TOKENS = 24
LEASE_SECONDS = 6
CONTEXT = 1024


class Router:
    """eldr-router with a configuration file, on free ports."""

    def __init__(
        self, program: Path, work: Path, centroids: Path, prefill: str, decode: Sequence[str]
    ) -> None:
        self.port, self.admin_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        config = {
            "listen": f"127.0.0.1:{self.port}",
            "admin": f"127.0.0.1:{self.admin_port}",
            "centroids": str(centroids),
            "routing": {"policy": "LocalityBand", "tau": 0.1, "prefillPolicy": "PrefixHash"},
            "prefill": [{"url": prefill}],
            "decode": [{"url": url, "cluster": i} for i, url in enumerate(decode)],
        }
        path = work / "router.yaml"
        path.write_text(json.dumps(config))  # JSON is YAML
        self._log = (work / "router.log").open("w")
        self.process = subprocess.Popen(
            [str(program), "--config", str(path)], stdout=self._log, stderr=subprocess.STDOUT
        )

    def wait(self, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while True:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/readyz", timeout=2),
            ):
                return
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("eldr-router is not ready; see router.log")
            time.sleep(0.2)

    def admin(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=10) as response:
            text: str = response.read().decode()
            return text

    def post(
        self, path: str, body: dict[str, Any], timeout: float = 120
    ) -> tuple[dict[str, Any], dict[str, str]]:
        request = urllib.request.Request(
            self.url + path,
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "X-Eldr-Debug": "1"},
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return json.load(response), {k.lower(): v for k, v in response.headers.items()}
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.code}: {error.read().decode(errors='replace')}") from None

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._log.close()


class System:
    """Everything that runs, and what a single vLLM answered."""

    def __init__(self, python: Path, programs: Path, model: Path, work: Path) -> None:
        self.python, self.programs, self.model, self.work = python, programs, model, work
        rows = prompts(60, 4242)
        self.asked = [row["prompt"] for row in rows[:16]]
        self.messages = [{"role": "user", "content": "Explain how a binary heap works."}]
        dataset = work / "dataset.jsonl"
        dataset.write_text(
            "".join(json.dumps({"prompt": r["prompt"], "label": r["label"]}) + "\n" for r in rows)
        )
        self.dataset = dataset
        self.centroids = work / "centroids.safetensors"
        self.reference: list[dict[str, Any]] = []
        self.chat_reference = ""
        self.prefill: Server
        self.decode: list[Server] = []
        self.router: Router

    # ------------------------------------------------------------ requests
    def completion(self, prompt: str) -> dict[str, Any]:
        return {
            "model": "tiny",
            "prompt": prompt,
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
        }

    def chat(self) -> dict[str, Any]:
        return {
            "model": "tiny",
            "messages": self.messages,
            "max_completion_tokens": ANSWER_TOKENS,
            "temperature": 0,
        }

    def through_router(self, index: int) -> tuple[dict[str, Any], dict[str, str]]:
        answer, headers = self.router.post("/v1/completions", self.completion(self.asked[index]))
        assert answer["choices"][0]["token_ids"] == self.reference[index]["token_ids"], (
            f"prompt {index}: {answer['choices'][0]['text']!r} instead of {self.reference[index]['text']!r}"
        )
        assert "eldr" not in json.dumps(answer), "the counts reached the client"
        return answer, headers

    def all_through_router(self, concurrency: int = 4) -> list[dict[str, str]]:
        with ThreadPoolExecutor(concurrency) as pool:
            return [h for _, h in pool.map(self.through_router, range(len(self.asked)))]

    # ------------------------------------------------------------ steps
    def calibrate_on_a_real_engine(self) -> str:
        """collect on an engine with --enable-return-routed-experts, fit; the same engine is the single vLLM
        to compare with."""
        log = self.work / "engine.log"
        arguments = ["--enable-return-routed-experts", "--num-gpu-blocks-override", "400"]
        with Server(self.python, self.model, log, arguments, max_model_len=CONTEXT) as engine:
            config = json.loads((self.model / "config.json").read_text())
            experts = config.get("num_experts") or config["num_local_experts"]
            trace = self.work / "trace.safetensors"
            self._calibrate(
                "collect", "--model", "tiny", "--engine", engine.url, "--dataset", str(self.dataset),
                "--sample-size", "60", "--decode-tokens", str(ANSWER_TOKENS), "--concurrency", "4",
                "--experts", str(experts), "--out", str(trace),
            )  # fmt: skip
            report = self._calibrate(
                "fit", "--trace", str(trace), "--clusters", "2", "--out", str(self.centroids), "--json"
            )
            for prompt in self.asked:
                self.reference.append(engine.post("/v1/completions", self.completion(prompt))["choices"][0])
            self.chat_reference = engine.post("/v1/chat/completions", self.chat())["choices"][0]["message"][
                "content"
            ]
        assert all(len(r["token_ids"]) == ANSWER_TOKENS for r in self.reference)
        fit = json.loads(report)
        return f"rho {fit.get('rho')}, layers kept {fit.get('layersKept', fit.get('layers_kept'))}"

    def _calibrate(self, *arguments: str) -> str:
        ran = subprocess.run(
            [str(self.programs / "eldr-calibrate"), *arguments],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == 0, (
            f"eldr-calibrate {arguments[0]} exited {ran.returncode}: {ran.stderr[-2000:]}"
        )
        return ran.stdout

    def start_workers(self) -> str:
        blocks = ["--num-gpu-blocks-override", "300"]
        both = multi_connector(nixl_connector(kv_lease_duration=LEASE_SECONDS), eldr_connector())
        self.prefill = Server(
            self.python,
            self.model,
            self.work / "prefill.log",
            [*PLUGIN, *transfer_config(both), *blocks, "--max-num-batched-tokens", "256"],
            max_model_len=CONTEXT,
        )
        self.decode = [self._decode_worker(i) for i in range(2)]
        for server in (self.prefill, *self.decode):
            server.wait()
        self.router = Router(
            self.programs / "eldr-router",
            self.work,
            self.centroids,
            self.prefill.url,
            [server.url for server in self.decode],
        )
        self.router.wait()
        return "1 prefill and 2 decode workers, NIXL, eldr-router"

    def _decode_worker(self, number: int, port: int | None = None) -> Server:
        return Server(
            self.python,
            self.model,
            self.work / f"decode-{number}.log",
            [*transfer_config(nixl_connector()), "--num-gpu-blocks-override", "300"],
            max_model_len=CONTEXT,
            port=port,
        )

    def greedy_answers_equal_a_single_vllm(self) -> str:
        headers = self.all_through_router()
        workers = {h["x-eldr-worker"] for h in headers}
        return f"{len(headers)} answers of {ANSWER_TOKENS} tokens, {len(workers)} decode workers"

    def requests_are_routed_by_their_experts(self) -> str:
        """Each decision had a signal, and the chosen worker is in the band."""
        headers = self.all_through_router(concurrency=1)
        for h in headers:
            assert "x-eldr-similarity" in h, h
            assert float(h["x-eldr-similarity"]) >= float(h["x-eldr-best-similarity"]) - 0.1 - 1e-6, h
        best = [float(h["x-eldr-best-similarity"]) for h in headers]
        transfers = sum(s.metric("vllm:nixl_xfer_time_seconds_count") for s in self.decode)
        assert transfers > 0, "no KV cache moved over NIXL"
        assert sum(s.metric("vllm:nixl_num_failed_transfers_total") for s in self.decode) == 0
        return f"best similarity {min(best):.3f} to {max(best):.3f}; NIXL transfers {transfers:.0f}"

    def prefix_hits_keep_counts_and_answers(self) -> str:
        before = self.prefill.metric("vllm:prefix_cache_hits_total")
        _, first = self.through_router(0)
        _, second = self.through_router(0)
        hits = self.prefill.metric("vllm:prefix_cache_hits_total") - before
        assert hits > 0, "no prefix hit"
        assert first["x-eldr-best-similarity"] == second["x-eldr-best-similarity"]
        return f"{hits:.0f} tokens hit"

    def streamed_chat_by_the_openai_client(self) -> str:
        from openai import OpenAI

        client = OpenAI(base_url=self.router.url + "/v1", api_key="none", timeout=120, max_retries=0)
        pieces = []
        usage = None
        stream = client.chat.completions.create(
            model="tiny",
            messages=self.messages,  # type: ignore[arg-type]
            max_completion_tokens=ANSWER_TOKENS,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
        for chunk in stream:
            usage = chunk.usage or usage
            pieces += [choice.delta.content or "" for choice in chunk.choices]
        assert "".join(pieces) == self.chat_reference
        assert usage is not None
        assert client.models.list().data[0].id == "tiny"
        return f"{len(pieces)} chunks, {usage.completion_tokens} tokens"

    def blocks_of_clients_that_went_away_are_freed(self) -> str:
        """Clients close their connection right after the request; the prefill worker frees what nobody
        fetched when its lease ends."""
        for index in range(6):
            body = json.dumps({**self.completion(f"gone {index} " * 40), "max_tokens": 64}).encode()
            with socket.create_connection(("127.0.0.1", self.router.port), timeout=10) as connection:
                connection.sendall(
                    b"POST /v1/completions HTTP/1.1\r\nHost: eldr\r\nContent-Type: application/json\r\n"
                    + f"Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                time.sleep(0.01 * index)
        # And the same for certain: a prefill leg that no decode leg follows.
        self.prefill.post(
            "/v1/completions",
            {
                **self.completion("left behind " * 30),
                "max_tokens": 1,
                "kv_transfer_params": {"do_remote_decode": True},
            },
        )
        held = self.prefill.metric("vllm:kv_cache_usage_perc")
        assert held > 0, "no blocks are held after a prefill leg"
        expired = "vllm:nixl_num_kv_expired_reqs_total"
        before = self.prefill.metric(expired)
        seconds = self._until(lambda: self.prefill.metric("vllm:kv_cache_usage_perc") == 0, 90)
        assert self.prefill.metric(expired) > before, "the blocks were freed, but not by the end of the lease"
        self.all_through_router()
        return f"{held:.2%} of the cache held, free after {seconds:.0f} s (lease {LEASE_SECONDS} s)"

    def a_decode_worker_dies_and_is_replaced(self) -> str:
        dead = self.decode[1]
        dead.stop(signal.SIGKILL)
        headers = self.all_through_router()
        assert len({h["x-eldr-worker"] for h in headers}) == 1
        self.decode[1] = self._decode_worker(1, port=dead.port)
        self.decode[1].wait()
        port = str(dead.port)
        begin = time.monotonic()

        def used() -> bool:
            return any(port in h["x-eldr-worker"] for h in self.all_through_router(8))

        seconds = self._until(used, 120)
        assert time.monotonic() - begin < 150
        return f"no request failed; the new worker is used {seconds:.0f} s after it is healthy"

    @staticmethod
    def _until(condition: Callable[[], bool], seconds: float) -> float:
        begin = time.monotonic()
        while not condition():
            assert time.monotonic() - begin < seconds, f"not within {seconds} s"
            time.sleep(0.5)
        return time.monotonic() - begin

    def router_metrics_tell_of_it(self) -> str:
        metrics = self.router.admin("/metrics")
        decisions = [line for line in metrics.splitlines() if line.startswith("eldr_router_decisions_total")]
        assert decisions, "no eldr_router_decisions_total"
        return "; ".join(line.removeprefix("eldr_router_decisions_total") for line in decisions)

    def stop(self) -> None:
        if hasattr(self, "router"):
            self.router.stop()
        for server in [*([self.prefill] if hasattr(self, "prefill") else []), *self.decode]:
            server.stop()


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("python", "bin", "model", "work"):
        parser.add_argument("--" + name, type=Path, required=True)
    given = parser.parse_args()
    system = System(given.python, given.bin, given.model, given.work)
    needed = [system.calibrate_on_a_real_engine, system.start_workers]
    checks = [
        system.greedy_answers_equal_a_single_vllm,
        system.requests_are_routed_by_their_experts,
        system.prefix_hits_keep_counts_and_answers,
        system.streamed_chat_by_the_openai_client,
        system.blocks_of_clients_that_went_away_are_freed,
        system.a_decode_worker_dies_and_is_replaced,
        system.router_metrics_tell_of_it,
    ]
    passed = failed = skipped = 0
    try:
        for check in needed + checks:
            name = check.__name__.replace("_", " ")
            if failed and check in checks and not hasattr(system, "router"):
                skipped += 1
                print(f"skipped: {name}", flush=True)
                continue
            begin = time.monotonic()
            try:
                said = check()
                passed += 1
                print(f"passed: {name} ({time.monotonic() - begin:.0f} s): {said}", flush=True)
            except Exception:
                failed += 1
                print(
                    f"FAILED: {name} ({time.monotonic() - begin:.0f} s)\n{traceback.format_exc()}", flush=True
                )
                if check in needed:
                    skipped += len(needed) + len(checks) - passed - failed
                    break
    finally:
        system.stop()
    print(f"logs: {given.work}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

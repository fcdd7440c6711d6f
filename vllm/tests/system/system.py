# SPDX-License-Identifier: Apache-2.0
"""The checks of `run`: calibrate on a real engine, route through real prefill and decode workers, break
things. Run by `run`."""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

import asking
from corpus import prompts
from eldr_vllm import wire
from routing import Headers, HeldPrefill, Router
from serving import (
    PLUGIN,
    Server,
    eldr_connector,
    end_with_cleanup_on_sigterm,
    multi_connector,
    nixl_connector,
    transfer_config,
)
from similarity import Centroids
from steps import Skipped, run_steps, total, wait_for

ANSWER_TOKENS = 24
LEASE_SECONDS = 6
CONTEXT = 1024
TAU = 0.1
CALIBRATED, ASKED, HELD_OUT = 60, 12, 40
DRAWS = 2000
EVERY = 0.5
"""Seconds between two looks at what is waited for."""
EDGE = 1e-5
"""How near to the band's edge a similarity must be for rounding to decide."""
NEAR_TIES = 8
"""How far two engines' counts of a prompt may be apart: 2 for each choice between nearly equal experts."""


class System:
    """Everything that runs, and what a single vLLM answered."""

    def __init__(self, python: Path, programs: Path, model: Path, work: Path) -> None:
        self.python, self.programs, self.model, self.work = python, programs, model, work
        self.trained = (model / "training.json").exists()
        rows = english(CALIBRATED, 4242)
        self.dataset = work / "dataset.jsonl"
        self.dataset.write_text(
            "".join(json.dumps({"prompt": r["prompt"], "label": r["label"]}) + "\n" for r in rows)
        )
        self.held_out = english(HELD_OUT, 777, held_out=True)
        self.candidates = [row["prompt"] for row in rows]
        self.asked: list[str] = []
        self.question = ""
        self.centroids = work / "centroids.safetensors"
        self.reference: list[dict[str, Any]] = []
        self.chat_reference = ""
        self.prefill: Server
        self.decode: list[Server] = []
        self.router: Router

    # ------------------------------------------------------------ requests
    def completion(self, prompt: str, tokens: int = ANSWER_TOKENS) -> dict[str, Any]:
        return asking.completion("tiny", prompt, tokens)

    def chat(self, question: str) -> dict[str, Any]:
        return {
            "model": "tiny",
            "messages": [{"role": "user", "content": question}],
            "max_completion_tokens": ANSWER_TOKENS,
            "temperature": 0,
        }

    def prefill_leg(self, prompt: str, **eldr: Any) -> dict[str, Any]:
        """Asks the prefill worker itself; what it says of the experts. No decode leg follows."""
        params = {"do_remote_decode": True, "eldr": eldr}
        answer = self.prefill.post(
            "/v1/completions", {**self.completion(prompt, 1), "kv_transfer_params": params}
        )
        said: dict[str, Any] = answer["kv_transfer_params"]["eldr"]
        return said

    def through_router(self, index: int) -> Headers:
        answer, headers = self.router.post("/v1/completions", self.completion(self.asked[index]))
        assert answer["choices"][0]["token_ids"] == self.reference[index]["token_ids"], (
            f"prompt {index}: {answer['choices'][0]['text']!r} instead of {self.reference[index]['text']!r}"
        )
        assert "eldr" not in json.dumps(answer), "the counts reached the client"
        return headers

    def all_through_router(self, concurrency: int = 4) -> list[Headers]:
        with ThreadPoolExecutor(concurrency) as pool:
            return list(pool.map(self.through_router, range(len(self.asked))))

    def worker_of(self, headers: Headers) -> int:
        """The number of the decode worker that answered."""
        return next(i for i, s in enumerate(self.decode) if headers["x-eldr-worker"].endswith(f":{s.port}"))

    def over_nixl(self) -> float:
        assert sum(s.metric("vllm:nixl_num_failed_transfers_total") for s in self.decode) == 0
        return sum(s.metric("vllm:nixl_xfer_time_seconds_count") for s in self.decode)

    def no_blocks_held(self, seconds: float = 90) -> float:
        return wait_for(
            "no blocks are held", lambda: self.prefill.metric("vllm:kv_cache_usage_perc") == 0, seconds, EVERY
        )

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
                "--sample-size", str(CALIBRATED), "--decode-tokens", str(ANSWER_TOKENS), "--concurrency", "4",
                "--experts", str(experts), "--out", str(trace),
            )  # fmt: skip
            # A prompt of random weights' model uses every expert: IDF would make all of them weigh nothing.
            transform = "count-idf" if self.trained else "count"
            report = self._calibrate(
                "fit", "--trace", str(trace), "--clusters", "2", "--transform", transform,
                "--out", str(self.centroids), "--json",
            )  # fmt: skip
            self._ask_a_single_vllm(engine)
        assert all(len(r["token_ids"]) == ANSWER_TOKENS for r in self.reference)
        fit = json.loads(report)
        return f"{CALIBRATED} requests, rho {fit['rho']:.3f}"

    def _ask_a_single_vllm(self, engine: Server) -> None:
        answers = asking.clear_answers(
            engine.url, asking.COMPLETIONS, self.completion, self.candidates, ASKED
        )
        self.asked = [prompt for prompt, _ in answers]
        self.reference = [choice for _, choice in answers]
        ((self.question, answer),) = asking.clear_answers(
            engine.url, asking.CHAT, self.chat, self.candidates, 1
        )
        self.chat_reference = answer["message"]["content"]

    def _calibrate(self, *arguments: str) -> str:
        ran = subprocess.run(
            self._calibrator(*arguments),
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert ran.returncode == 0, (
            f"eldr-calibrate {arguments[0]} exited {ran.returncode}: {ran.stderr[-2000:]}"
        )
        return ran.stdout

    def _calibrator(self, *arguments: str) -> list[str]:
        return [str(self.programs / "eldr-calibrate"), *arguments]

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
        self.router = self._router("router", self.prefill.url).wait()
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

    def _router(self, name: str, prefill: str) -> Router:
        program, decode = self.programs / "eldr-router", [server.url for server in self.decode]
        return Router(program, self.work / name, self.centroids, prefill, decode, TAU)

    # ------------------------------------------------------------ checks
    def greedy_answers_equal_a_single_vllm(self) -> str:
        """Token for token, with the KV cache of each answer moved from the prefill worker."""
        before = self.over_nixl()
        headers = self.all_through_router()
        moved = self.over_nixl() - before
        assert moved >= len(headers), f"{moved:.0f} transfers for {len(headers)} requests"
        workers = {self.worker_of(h) for h in headers}
        return (
            f"{len(headers)} answers of {ANSWER_TOKENS} tokens, {moved:.0f} NIXL transfers, "
            f"{len(workers)} decode workers"
        )

    def similarities_equal_an_independent_computation(self) -> str:
        """What the router says of each request, against the worker's counts and the centroid file in NumPy;
        and the worker it chose is the one of the best cluster wherever no other is within tau."""
        centroids = Centroids(self.centroids)
        off, alone = 0.0, 0
        for index, prompt in enumerate(self.asked):
            headers = self.through_router(index)
            worked_out = centroids.similarities(self.prefill_leg(prompt, layers=centroids.layers))
            chosen = self.worker_of(headers)
            assert int(headers["x-eldr-cluster"]) == chosen
            assert headers["x-eldr-reason"] == "signature"
            off = max(
                off,
                abs(float(headers["x-eldr-similarity"]) - worked_out[chosen]),
                abs(float(headers["x-eldr-best-similarity"]) - worked_out.max()),
            )
            band = int(headers["x-eldr-band"])
            # The router works in single precision: a worker at the band's very edge may be in or out.
            narrow, wide = (int((worked_out >= worked_out.max() - TAU + d).sum()) for d in (EDGE, -EDGE))
            assert narrow <= band <= wide, f"a band of {band}, similarities {worked_out}"
            assert worked_out[chosen] >= worked_out.max() - TAU - EDGE
            alone += band == 1
        assert off < 6e-4, f"similarities differ by {off}"  # the headers have three decimals
        return f"largest difference {off:.1e}; {alone} of {len(self.asked)} had one worker in the band"

    def counts_equal_those_of_the_calibration_engine(self) -> str:
        """What vLLM's own --enable-return-routed-experts said of the same prompts."""
        with safe_open(str(self.work / "trace.safetensors"), "np") as trace:
            seen = trace.get_tensor("prefill_counts").astype(int)
        differences = []
        for prompt in self.asked:
            counts = wire.decode(self.prefill_leg(prompt)).astype(int)
            # The trace does not name prompts; two prompts differ by far more than near ties do.
            differences.append(int(np.abs(seen - counts).sum(axis=(1, 2)).min()))
        assert max(differences) <= NEAR_TIES, differences
        return f"{len(differences)} prompts, choices that differ: {sum(differences) // 2}"

    def requests_of_a_domain_meet_on_a_worker(self) -> str:
        """Prompts that were not calibrated on. If the choice said nothing of the domain, shuffled choices
        would now and then concentrate as much."""
        if not self.trained:
            raise Skipped("random weights have no domains")
        domains = [row["domain"] for row in self.held_out]
        workers = []
        for row in self.held_out:
            _, headers = self.router.post("/v1/completions", self.completion(row["prompt"], 2))
            workers.append(self.worker_of(headers))
        found = concentration(domains, workers)
        rng = random.Random(1)
        by_chance = [concentration(domains, rng.sample(workers, len(workers))) for _ in range(DRAWS)]
        table = {d: [sum(x == (d, w) for x in zip(domains, workers, strict=True)) for w in (0, 1)]
                 for d in sorted(set(domains))}  # fmt: skip
        said = f"{found:.0%} on their domain's worker, by chance {sum(by_chance) / DRAWS:.0%}; {table}"
        assert found > max(by_chance), said
        assert len(set(workers)) == 2, said
        return said

    def prefix_hits_keep_counts_and_answers(self) -> str:
        before = self.prefill.metric("vllm:prefix_cache_hits_total")
        longest = max(range(len(self.asked)), key=lambda i: len(self.asked[i]))
        first, second = self.through_router(longest), self.through_router(longest)
        hits = self.prefill.metric("vllm:prefix_cache_hits_total") - before
        assert hits > 0, "no prefix hit"
        assert first["x-eldr-similarity"] == second["x-eldr-similarity"]
        again = self.prefill_leg(self.asked[longest])
        assert again["counted"] == again["tokens"] > hits / 2
        return f"{hits:.0f} tokens hit"

    def the_calibrator_tells_what_the_engine_lacks(self) -> str:
        """A decode worker is an engine without the option."""
        ran = subprocess.run(
            self._calibrator(
                "collect", "--model", "tiny", "--engine", self.decode[0].url, "--dataset", str(self.dataset),
                "--sample-size", "2", "--decode-tokens", "4", "--experts", "8",
                "--out", str(self.work / "never.safetensors"),
            ),
            capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert ran.returncode != 0
        said = ran.stderr.strip().splitlines()[-1]
        assert "--enable-return-routed-experts" in said, ran.stderr
        assert not (self.work / "never.safetensors").exists()
        return said

    def streamed_chat_by_the_openai_client(self) -> str:
        from openai import OpenAI

        client = OpenAI(base_url=self.router.url + "/v1", api_key="none", timeout=300, max_retries=0)
        pieces = []
        usage = None
        stream = client.chat.completions.create(
            **self.chat(self.question), stream=True, stream_options={"include_usage": True}
        )
        for chunk in stream:
            usage = chunk.usage or usage
            pieces += [choice.delta.content or "" for choice in chunk.choices]
        assert "".join(pieces) == self.chat_reference
        assert len(pieces) > 1, "the answer came in one piece"
        assert usage is not None
        assert client.models.list().data[0].id == "tiny"
        return f"{len(pieces)} chunks, {usage.completion_tokens} tokens"

    def the_lease_ends_for_a_client_that_left_between_the_legs(self) -> str:
        """The prefill worker's answer is held back until the client has gone: no decode leg may follow, and
        the blocks are freed by the end of their lease."""
        self.no_blocks_held()
        expired = self.prefill.metric("vllm:nixl_num_kv_expired_reqs_total")
        with HeldPrefill(self.prefill.url) as held, self._router("held", held.url) as router:
            connection = router.open("/v1/completions", self.completion(self.asked[0]))
            assert held.answered.wait(300), "no prefill leg"
            share = self.prefill.metric("vllm:kv_cache_usage_perc")
            assert share > 0, "no blocks are held after a prefill leg"
            connection.close()
            wait_for(
                "the router notices that the client has gone",
                lambda: sum(router.samples("eldr_router_client_gone_total").values()) == 1,
                30,
                EVERY,
            )
            held.release()
            seconds = self.no_blocks_held()
            assert sum(router.samples("eldr_router_decisions_total").values()) == 0, "a decode leg followed"
        now = self.prefill.metric("vllm:nixl_num_kv_expired_reqs_total")
        assert now == expired + 1, "the blocks were freed, but not by the end of the lease"
        return f"{share:.2%} of the cache held, free after {seconds:.0f} s (lease {LEASE_SECONDS} s)"

    def clients_that_hang_up_at_any_moment_leave_nothing(self) -> str:
        for index in range(6):
            connection = self.router.open("/v1/completions", self.completion(f"gone {index} " * 40, 64))
            time.sleep(0.05 * index)
            connection.close()
        seconds = self.no_blocks_held()
        wait_for(
            "no request runs",
            lambda: sum(s.metric("vllm:num_requests_running") for s in self.decode) == 0,
            60,
            EVERY,
        )
        self.all_through_router()
        return f"6 clients; all blocks free after {seconds:.0f} s"

    def a_decode_worker_dies_and_is_replaced(self) -> str:
        """Its running stream ends as a broken one; other requests go to the worker that is left; and to the
        new one when it is there."""
        body = {**self.completion(self.asked[0], 400), "stream": True}
        connection = self.router.open("/v1/completions", body)
        response = connection.getresponse()
        response.readline()
        victim = self.worker_of({k.lower(): v for k, v in response.getheaders()})
        dead = self.decode[victim]
        dead.stop(signal.SIGKILL)
        try:
            response.read()
        except (http.client.IncompleteRead, ConnectionError):
            pass
        else:
            raise AssertionError("the stream of a dead worker ended as if it were whole")
        headers = self.all_through_router()
        assert {self.worker_of(h) for h in headers} == {1 - victim}
        self.decode[victim] = self._decode_worker(victim, port=dead.port)
        self.decode[victim].wait()
        seconds = wait_for(
            "the new worker is used",
            lambda: any(self.worker_of(h) == victim for h in self.all_through_router(8)),
            120,
            EVERY,
        )
        return f"no other request failed; the new worker is used {seconds:.0f} s after it is healthy"

    def router_metrics_tell_of_it(self) -> str:
        decisions = self.router.samples("eldr_router_decisions_total")
        assert set(decisions) == {'policy="LocalityBand",reason="signature"'}, decisions
        requests = self.router.samples("eldr_router_requests_total")
        codes = {re.sub(r'.*code="(\d*)".*', r"\1", labels) for labels in requests}
        assert codes == {"200", "0"}, codes  # 0: the client had gone before the answer began
        assert sum(self.router.samples("eldr_router_broken_streams_total").values()) >= 1
        return f"{sum(decisions.values()):.0f} decisions, all by signature"

    def stop(self) -> None:
        running = [getattr(self, "router", None), getattr(self, "prefill", None), *self.decode]
        with ThreadPoolExecutor() as pool:  # all at once: a worker takes up to 15 s
            list(pool.map(lambda part: part.stop(), filter(None, running)))


def english(count: int, seed: int, held_out: bool = False) -> list[dict[str, str]]:
    """One language: two clusters then have nothing but domains to go by."""
    return [row for row in prompts(4 * count, seed, held_out) if row["language"] == "en"][:count]


def concentration(domains: list[str], workers: list[int]) -> float:
    """Share of requests that went to the worker that most of their domain went to."""
    counts = Counter(zip(domains, workers, strict=True))
    return sum(max(counts[domain, w] for w in (0, 1)) for domain in set(domains)) / len(domains)


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("python", "bin", "model", "work"):
        parser.add_argument("--" + name, type=Path, required=True)
    given = parser.parse_args()
    end_with_cleanup_on_sigterm()
    system = System(given.python, given.bin, given.model, given.work)
    needed = [system.calibrate_on_a_real_engine, system.start_workers]
    checks = [
        system.greedy_answers_equal_a_single_vllm,
        system.counts_equal_those_of_the_calibration_engine,
        system.similarities_equal_an_independent_computation,
        system.requests_of_a_domain_meet_on_a_worker,
        system.prefix_hits_keep_counts_and_answers,
        system.the_calibrator_tells_what_the_engine_lacks,
        system.streamed_chat_by_the_openai_client,
        system.the_lease_ends_for_a_client_that_left_between_the_legs,
        system.clients_that_hang_up_at_any_moment_leave_nothing,
        system.a_decode_worker_dies_and_is_replaced,
        system.router_metrics_tell_of_it,
    ]
    try:
        results = run_steps(needed, checks)
    finally:
        system.stop()
    print(f"logs: {given.work}")
    print(total(results))
    return 1 if results["FAILED"] else 0


if __name__ == "__main__":
    sys.exit(main())

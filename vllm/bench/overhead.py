# SPDX-License-Identifier: Apache-2.0
"""What counting costs: two servers with the same model, one with the plugin and one without, asked in turns.

    overhead.py --python build/vllm-venv/0.30.0/bin/python --model FOLDER [--rounds 40]

Turns alternate between the servers, so that a slower or busier minute of the machine meets both. Prints for
each length of prompt the median of the prefill leg on both sides and of their difference within a round,
and the same for a step with one token (decode).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from serving import HANDED_OVER, PLUGIN, Server, eldr_connector, transfer_config


def ask(server: Server, prompt: Sequence[int], tokens: int, handed_over: bool) -> float:
    """Milliseconds of one request."""
    body: dict[str, Any] = {
        "model": "tiny",
        "prompt": list(prompt),
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
    }
    if handed_over:
        body["kv_transfer_params"] = HANDED_OVER
    begin = time.perf_counter()
    server.post("/v1/completions", body)
    return (time.perf_counter() - begin) * 1000


def compare(name: str, rounds: int, one: Callable[[Server], float], off: Server, on: Server) -> None:
    pairs = []
    for i in range(rounds):
        first, second = (off, on) if i % 2 == 0 else (on, off)
        a, b = one(first), one(second)
        pairs.append((a, b) if first is off else (b, a))
    pairs = pairs[rounds // 10 :]
    without, with_plugin = (statistics.median(side) for side in zip(*pairs, strict=True))
    differences = sorted(b - a for a, b in pairs)
    low, high = differences[len(differences) // 4], differences[3 * len(differences) // 4]
    print(
        f"{name:<28} off {without:8.2f} ms   on {with_plugin:8.2f} ms   "
        f"difference {statistics.median(differences):+7.2f} ms "
        f"(quartiles {low:+.2f} … {high:+.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--dtype", default="float32")
    given = parser.parse_args()
    rng = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        blocks = ["--num-gpu-blocks-override", "400", "--max-num-batched-tokens", "2048"]
        off = Server(given.python, given.model, Path(folder) / "off.log", blocks, dtype=given.dtype)
        on = Server(
            given.python,
            given.model,
            Path(folder) / "on.log",
            [*blocks, *PLUGIN, *transfer_config(eldr_connector())],
            dtype=given.dtype,
        )
        with off, on:
            for length in (32, 512, 1024):

                def fresh(server: Server, length: int = length) -> float:
                    return ask(server, [rng.randrange(5, 500) for _ in range(length)], 1, handed_over=True)

                compare(f"prefill of {length} tokens", given.rounds, fresh, off, on)
            stem = [rng.randrange(5, 500) for _ in range(1024)]

            def cached(server: Server) -> float:
                return ask(server, [*stem, rng.randrange(5, 500)], 1, handed_over=True)

            compare("prefix hit of 1024 tokens", given.rounds, cached, off, on)

            def steps(server: Server) -> float:
                return ask(server, stem[:16], 65, handed_over=False) / 64

            compare("step with one token", given.rounds // 2, steps, off, on)


if __name__ == "__main__":
    main()

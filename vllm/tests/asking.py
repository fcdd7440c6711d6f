# SPDX-License-Identifier: Apache-2.0
"""What the tests ask of servers over HTTP. Standard library only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any

DEBUG = {"X-Eldr-Debug": "1"}
"""Asks eldr-router to say in its headers what it decided."""

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
TWO_BEST: dict[str, dict[str, Any]] = {
    COMPLETIONS: {"logprobs": 2, "return_tokens_as_token_ids": True},
    CHAT: {"logprobs": True, "top_logprobs": 2},
}
"""What a request adds so that its answer says how close the next best token was."""
NEAR_TIE = 1e-3
"""Log probabilities of the same token by servers that batch differently are some 1e-5 apart in float32."""


def post(
    url: str, body: dict[str, Any], timeout: float = 120, headers: dict[str, str] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The answer and its headers, whose names are in lower case. An error's text is in the exception."""
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
    )
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response), {k.lower(): v for k, v in response.headers.items()}
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{error.code}: {error.read().decode(errors='replace')}") from None


def get(url: str, timeout: float = 10) -> str:
    with urllib.request.urlopen(url, timeout=timeout) as response:
        text: str = response.read().decode()
        return text


def metric(url: str, name: str, timeout: float = 10) -> float:
    """The sum of a metric's samples at a server's /metrics."""
    lines = get(url + "/metrics", timeout).splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + "{", name + " ")))


def completion(model: str, prompt: str, tokens: int) -> dict[str, Any]:
    """A request whose answer is the same tokens each time, however often it is asked."""
    return {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }


def clear_answers(
    url: str, path: str, body_of: Callable[[str], dict[str, Any]], prompts: Iterable[str], count: int
) -> list[tuple[str, dict[str, Any]]]:
    """The first `count` prompts whose greedy answers by the server at `url` have no near tie, with the
    answers' choices: servers that batch differently may part at one. `path` is a key of TWO_BEST."""
    found = []
    for prompt in prompts:
        answer, _ = post(url + path, {**body_of(prompt), **TWO_BEST[path]}, timeout=180)
        choice = answer["choices"][0]
        if _closest(choice) >= NEAR_TIE:
            found.append((prompt, choice))
        if len(found) == count:
            return found
    raise AssertionError(f"{len(found)} of the prompts have answers without near ties, {count} are needed")


def _closest(choice: dict[str, Any]) -> float:
    """The least difference in log probability between the best token and the next, of an answer's tokens."""
    said = choice["logprobs"]
    if "top_logprobs" in said:
        tokens: list[list[float]] = [list(best.values()) for best in said["top_logprobs"]]
    else:  # a chat
        tokens = [[best["logprob"] for best in token["top_logprobs"]] for token in said["content"]]
    ordered = [sorted(best, reverse=True) for best in tokens]
    return min(first - second for first, second, *_ in ordered)

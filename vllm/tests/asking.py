# SPDX-License-Identifier: Apache-2.0
"""What the tests ask of servers over HTTP. Standard library only."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

DEBUG = {"X-Eldr-Debug": "1"}
"""Asks eldr-router to say in its headers what it decided."""


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

# SPDX-License-Identifier: Apache-2.0
"""The keys of `kv_connector_extra_config` that the connector understands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

SCATTERS = ("auto", "cuda", "torch")


@dataclass(frozen=True)
class Options:
    """Read once at start; anything unknown or of the wrong type stops the server with a message."""

    always: bool = False
    """Return counts for every request, not only for those with do_remote_decode."""
    layers: tuple[int, ...] | None = None
    """Model layer numbers to count; None: all MoE layers. Saves memory when the router uses few."""
    memory_limit_mib: float | None = None
    """Refuse to start when table and buffers need more than this."""
    scatter: str = "auto"
    """Which implementation updates the table: the CUDA kernel, torch, or the first that works."""
    full_cuda_graphs: bool = False
    """Allow full CUDA graphs; piecewise graphs are asked for otherwise."""

    @staticmethod
    def parse(extra: Mapping[str, Any] | None) -> Options:
        given = dict(extra or {})
        known = {field.name for field in fields(Options)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ValueError(
                f"eldr: kv_connector_extra_config.{unknown[0]} is not known; there are "
                f"{', '.join(sorted(known))}"
            )
        for name in ("always", "full_cuda_graphs"):
            if not isinstance(given.get(name, False), bool):
                raise _wrong(name, given[name], "true or false")
        if given.get("layers") is not None:
            layers = given["layers"]
            good = isinstance(layers, list | tuple) and len(layers) > 0
            if not good or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in layers):
                raise _wrong("layers", layers, "a list of model layer numbers")
            given["layers"] = tuple(sorted(set(layers)))
        limit = given.get("memory_limit_mib")
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int | float) or limit <= 0
        ):
            raise _wrong("memory_limit_mib", limit, "a number above 0")
        if given.get("scatter", "auto") not in SCATTERS:
            raise _wrong("scatter", given["scatter"], "one of " + ", ".join(SCATTERS))
        return Options(**given)


def _wrong(name: str, value: object, allowed: str) -> ValueError:
    return ValueError(f"eldr: kv_connector_extra_config.{name} is {value!r}; it must be {allowed}")

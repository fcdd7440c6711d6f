# SPDX-License-Identifier: Apache-2.0
"""What the scheduler's side remembers of each request, and what it tells the workers each step. Standard
library and numpy only.

A step's plan is carried out by the worker in this order: forget the rows of `fresh` blocks, make `copies`,
run the model, add the step's tokens to the rows, sum the rows of `ending` requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from . import verify, wire


@dataclass(frozen=True)
class Copy:
    """Block `target` starts with the first `tokens` tokens of block `source`."""

    source: int
    target: int
    tokens: int


@dataclass(frozen=True)
class Ending:
    """A request whose prompt is complete with this step: sum the rows of its blocks."""

    request: str
    blocks: tuple[int, ...]
    layers: tuple[int, ...] | None


@dataclass(frozen=True)
class Plan:
    """One step. `tokens`: how many tokens the step computes; `loaded`: (block, tokens) of blocks whose first
    tokens come from elsewhere and whose further tokens are computed here."""

    tokens: int = 0
    fresh: tuple[int, ...] = ()
    loaded: tuple[tuple[int, int], ...] = ()
    copies: tuple[Copy, ...] = ()
    ending: tuple[Ending, ...] = ()


@dataclass(frozen=True)
class Scheduled:
    """A request's share of a step: `computed` tokens are in the cache before it, `tokens` more are computed
    by it."""

    request: str
    computed: int
    tokens: int
    blocks: Sequence[int]


@dataclass
class Part:
    """What one worker found for a request: counts [len(layers), experts] of those of its layers that were
    asked for.

    With pipeline parallelism each worker has other layers and the parts are put together.
    """

    layers: tuple[int, ...]
    counts: npt.NDArray[np.int32]
    available: tuple[int, ...]
    top_k: int
    error: str | None = None


@dataclass
class _Request:
    prompt_tokens: int
    wanted: bool
    asked: tuple[int, ...] | None = None
    bad_request: str | None = None
    local: int = 0
    admitted: bool = False
    parts: list[Part] = field(default_factory=list)


class Tracker:
    """Not thread-safe: the scheduler calls it. Holds one small record a live request, released by
    finish()."""

    def __init__(self, block_size: int, always: bool = False) -> None:
        self._block_size = block_size
        self._always = always
        self._requests: dict[str, _Request] = {}
        self._fresh: list[int] = []

    def __len__(self) -> int:
        return len(self._requests)

    def looked_up(
        self, request: str, prompt_tokens: int, local: int, params: Mapping[str, Any] | None
    ) -> None:
        """The scheduler looked for a cached prefix and found `local` tokens in this engine (whole blocks).
        Also after a preemption.

        MultiConnector tells only the connector that was chosen about tokens loaded from elsewhere, so what
        lies beyond the local hit is always taken as not counted.
        """
        known = self._requests.get(request)
        if known is None:
            params = params if isinstance(params, Mapping) else {}
            known = _Request(prompt_tokens, self._always or bool(params.get("do_remote_decode")))
            try:
                known.asked = wire.parse_request(params)
            except wire.WireError as error:
                known.bad_request = str(error)
            self._requests[request] = known
        known.prompt_tokens = prompt_tokens
        known.local = local

    def allocated(self, request: str, blocks: Sequence[int]) -> None:
        """The request now has these blocks. Those beyond the local hit start a new life: whatever their rows
        hold is another request's.

        Blocks that the model fills from their first token on would be overwritten anyway; blocks that another
        connector fills would not.
        """
        known = self._requests.get(request)
        if known is not None:
            known.admitted = True
            self._fresh.extend(blocks[known.local // self._block_size :])

    def step(self, scheduled: Iterable[Scheduled], copies: Iterable[tuple[int, int]] = ()) -> Plan:
        """The plan for a step. `copies`: (source, target) blocks that the worker copies before the model
        runs."""
        sources = {target: source for source, target in copies}
        tokens = 0
        loaded: list[tuple[int, int]] = []
        made: list[Copy] = []
        ending: list[Ending] = []
        for share in scheduled:
            tokens += share.tokens
            known = self._requests.get(share.request)
            if known is None:
                continue
            if known.admitted:
                known.admitted = False
                index, tail = divmod(share.computed, self._block_size)
                block = share.blocks[index]
                if tail and block in sources:
                    made.append(Copy(sources[block], block, tail))
                elif tail:
                    loaded.append((block, tail))
            # Exactly at the end of the prompt: never later, when rows hold generated tokens too (a request
            # that was preempted while it generated computes prompt and generated tokens in one go); again, if
            # a failed load made the engine compute it again.
            if known.wanted and share.computed + share.tokens == known.prompt_tokens:
                known.parts.clear()
                last = -(-known.prompt_tokens // self._block_size)
                ending.append(Ending(share.request, tuple(share.blocks[:last]), known.asked))
        fresh, self._fresh = tuple(dict.fromkeys(self._fresh)), []
        return Plan(tokens, fresh, tuple(loaded), tuple(made), tuple(ending))

    def take(self, request: str, part: Part) -> None:
        """A worker's counts have arrived."""
        known = self._requests.get(request)
        if known is not None:
            known.parts.append(part)

    def finish(self, request: str, workers: int = 1) -> dict[str, Any] | None:
        """Forget the request; the value of `kv_transfer_params.eldr`, or None when it did not want one."""
        known = self._requests.pop(request, None)
        if known is None or not known.wanted:
            return None
        if known.bad_request is not None:
            return wire.refusal(known.bad_request)
        if len(known.parts) < workers:
            return wire.refusal(
                "the prompt was not computed to its end, or its counts had not arrived when the request "
                "finished"
                if not known.parts
                else f"counts of {len(known.parts)} of {workers} pipeline stages"
            )
        for part in known.parts:
            if part.error is not None:
                return wire.refusal(part.error)
        return _answer(known)


def _answer(known: _Request) -> dict[str, Any]:
    available = sorted({layer for part in known.parts for layer in part.available})
    rows = {layer: part.counts[i] for part in known.parts for i, layer in enumerate(part.layers)}
    layers = list(known.asked) if known.asked is not None else available
    for layer in layers:
        if layer not in rows:
            return wire.refusal(
                f"kv_transfer_params.eldr.layers: layer {layer} is not counted here; there are "
                f"{_ranges(available)}"
            )
    counts = np.stack([rows[layer] for layer in layers])
    try:
        counted = verify.counted_tokens(counts, layers, known.parts[0].top_k, known.prompt_tokens)
    except verify.NotTrustworthy as error:
        return wire.refusal(str(error))
    return wire.encode(counts, layers, known.prompt_tokens, counted)


def _ranges(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> "0-2, 5"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs) or "none"

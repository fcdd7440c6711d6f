# SPDX-License-Identifier: Apache-2.0
"""A small imitation of an engine's scheduler and block pool, and what each block truly holds. Numpy and
standard library only.

It does what matters to the counts: chunked prefill, a prefix cache that evicts the least recently used
blocks, preemption, generated tokens, aborts, prefixes loaded from elsewhere (at once or between steps), hits
that end inside a block and copy it. An expert choice depends on a token and all before it, as in a model;
`experts_of` is that function.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from eldr_vllm.tracker import Scheduled, Tracker

LAYERS, EXPERTS, TOP_K = 3, 8, 2


def experts_of(prefix: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """[LAYERS, TOP_K] distinct experts of the prefix's last token."""
    rng = random.Random(repr(prefix))
    return np.array([rng.sample(range(EXPERTS), TOP_K) for _ in range(LAYERS)])


@dataclass
class Place:
    """What a place of a block holds: the prefix that ends there, and whether this engine computed it."""

    prefix: tuple[int, ...]
    here: bool


@dataclass
class Request:
    name: str
    prompt: tuple[int, ...]
    generate: int
    external: int = 0
    asynchronous: bool = False
    layers: tuple[int, ...] | None = None
    tokens: list[int] = field(default_factory=list)
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    loading: int = 0
    asked_external: bool = False


@dataclass
class Step:
    """One step for the worker: who computes which slots."""

    shares: list[Scheduled]
    copies: list[tuple[int, int]]
    slots: list[int]
    ids: list[npt.NDArray[np.int64]]
    expected: dict[str, tuple[npt.NDArray[np.int64], int]]
    """By request whose prompt ends in this step: true counts [LAYERS, EXPERTS] of tokens computed here, and
    their number."""


class Engine:
    def __init__(self, seed: int, blocks: int, block_size: int, budget: int, tracker: Tracker) -> None:
        self.rng = random.Random(seed)
        self.block_size, self.budget, self.tracker = block_size, budget, tracker
        self.content: list[list[Place]] = [[] for _ in range(blocks)]
        self.references = [0] * blocks
        self.free: OrderedDict[int, None] = OrderedDict((b, None) for b in range(blocks))
        self.cached: dict[tuple[int, ...], int] = {}
        self.key: dict[int, tuple[int, ...]] = {}
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.finished: list[Request] = []
        self.preemptions = self.hits = self.evictions = self.copies_made = 0

    # ------------------------------------------------------------ blocks
    def _take(self, count: int) -> list[int] | None:
        if len(self.free) < count:
            return None
        taken = []
        for _ in range(count):
            block, _ = self.free.popitem(last=False)
            if block in self.key:
                del self.cached[self.key.pop(block)]
                self.evictions += 1
            self.content[block] = []
            self.references[block] = 1
            taken.append(block)
        return taken

    def _hold(self, block: int) -> None:
        self.free.pop(block, None)
        self.references[block] += 1

    def _release(self, blocks: list[int]) -> None:
        for block in reversed(blocks):
            self.references[block] -= 1
            if self.references[block] == 0:
                self.free[block] = None

    def _cache(self, request: Request, tokens: int) -> None:
        """Whole blocks become findable as soon as they are scheduled, before they are computed."""
        for i in range(tokens // self.block_size):
            prefix = tuple(request.tokens[: (i + 1) * self.block_size])
            block = request.blocks[i]
            if prefix not in self.cached and block not in self.key:
                self.cached[prefix] = block
                self.key[block] = prefix

    # ------------------------------------------------------------ requests
    def add(self, request: Request) -> None:
        request.tokens = list(request.prompt)
        self.waiting.append(request)

    def abort(self, request: Request) -> None:
        (self.running if request in self.running else self.waiting).remove(request)
        self._release(request.blocks)
        self.tracker.finish(request.name)

    def _preempt(self) -> None:
        victim = self.running.pop()
        self._release(victim.blocks)
        victim.blocks, victim.computed = [], 0
        self.waiting.insert(0, victim)
        self.preemptions += 1

    # ------------------------------------------------------------ a step
    def step(self) -> Step:
        shares: list[tuple[Request, int]] = []
        copies: list[tuple[int, int]] = []
        held: list[int] = []
        budget = self.budget
        for request in list(self.running):
            if request not in self.running or budget == 0:
                continue
            tokens = min(len(request.tokens) - request.computed, budget)
            if not self._grow(request, request.computed + tokens, shares):
                continue
            shares.append((request, tokens))
            budget -= tokens
        preempted = self.preemptions
        while self.waiting and budget > 0 and preempted == self.preemptions:
            admitted = self._admit(self.waiting[0], budget, copies, held)
            if admitted is None:
                break
            request = self.waiting.pop(0)
            if admitted == 0:  # loads from elsewhere: computes nothing yet
                self.waiting.append(request)
                break
            self.running.append(request)
            shares.append((request, admitted))
            budget -= admitted
        step = self._compute(shares, copies)
        self._release(held)
        self._advance(shares)
        return step

    def _grow(self, request: Request, tokens: int, shares: list[tuple[Request, int]]) -> bool:
        need = -(-tokens // self.block_size) - len(request.blocks)
        while need > 0:
            got = self._take(need)
            if got is not None:
                request.blocks += got
                break
            if any(self.running[-1] is r for r, _ in shares):
                return False
            last = self.running[-1]
            self._preempt()
            if last is request:
                return False
        self._cache(request, tokens)
        return True

    def _admit(
        self, request: Request, budget: int, copies: list[tuple[int, int]], held: list[int]
    ) -> int | None:
        source: int | None = None
        if request.computed == 0:
            blocks, tail, source = self._find(request)
            local = len(blocks) * self.block_size
            self.tracker.looked_up(
                request.name,
                len(request.prompt),
                local,
                {
                    "do_remote_decode": True,
                    "eldr": {"layers": list(request.layers)} if request.layers else None,
                },
            )
            external = 0
            if request.external and not request.asked_external:
                external = max(0, min(request.external, len(request.tokens) - 1) - local)
            if external > tail:
                tail, source = 0, None
            else:
                external = 0
            self.hits += local + tail
        else:  # loaded between the steps
            blocks, tail, local, external = [], 0, 0, 0
        start = request.computed or local + tail + external
        asynchronous = external > 0 and request.asynchronous
        tokens = 0 if asynchronous else min(len(request.tokens) - start, budget)
        for block in blocks:
            self._hold(block)
        if source is not None:
            self._hold(source)
        have = len(request.blocks) + len(blocks)
        got = self._take(max(0, -(-(start + tokens) // self.block_size) - have))
        if got is None:
            self._release(blocks + ([source] if source is not None else []))
            return None
        request.blocks += blocks + got
        if source is not None:
            target = request.blocks[local // self.block_size]
            self.content[target] = list(self.content[source][:tail])
            exact = len(self.content[source]) == tail
            if not exact:
                self.content[target] = [Place(place.prefix, False) for place in self.content[target]]
            copies.append((source, target))
            held.append(source)
            self.copies_made += 1
        self.tracker.allocated(request.name, request.blocks)
        if external:
            request.asked_external = True
            for position in range(local, local + external):
                places = self.content[request.blocks[position // self.block_size]]
                del places[position % self.block_size :]
                places.append(Place(tuple(request.tokens[: position + 1]), False))
        request.computed = start
        if not asynchronous:
            self._cache(request, start + tokens)
        return tokens

    def _find(self, request: Request) -> tuple[list[int], int, int | None]:
        """Cached whole blocks of the prefix; then maybe a part of a running request's last block, which
        would be copied."""
        blocks: list[int] = []
        limit = len(request.tokens) - 1
        while (len(blocks) + 1) * self.block_size <= limit:
            block = self.cached.get(tuple(request.tokens[: (len(blocks) + 1) * self.block_size]))
            if block is None:
                break
            blocks.append(block)
        local = len(blocks) * self.block_size
        for other in self.running:
            index = local // self.block_size
            if other is request or index >= len(other.blocks) or self.references[other.blocks[index]] == 0:
                continue
            places = self.content[other.blocks[index]]
            tail = 0
            while tail < min(len(places), limit - local) and places[tail].prefix == tuple(
                request.tokens[: local + tail + 1]
            ):
                tail += 1
            if 0 < tail < self.block_size and self.rng.random() < 0.5:
                return blocks, tail, other.blocks[index]
        return blocks, 0, None

    def _compute(self, shares: list[tuple[Request, int]], copies: list[tuple[int, int]]) -> Step:
        step = Step([], copies, [], [], {})
        for request, tokens in shares:
            step.shares.append(Scheduled(request.name, request.computed, tokens, list(request.blocks)))
            for position in range(request.computed, request.computed + tokens):
                block = request.blocks[position // self.block_size]
                place = position % self.block_size
                prefix = tuple(request.tokens[: position + 1])
                del self.content[block][place:]
                self.content[block].append(Place(prefix, True))
                step.slots.append(block * self.block_size + place)
                step.ids.append(experts_of(prefix))
        for request, tokens in shares:
            if request.computed + tokens == len(request.prompt):
                step.expected[request.name] = self._truth(request)
        return step

    def _truth(self, request: Request) -> tuple[npt.NDArray[np.int64], int]:
        counts = np.zeros((LAYERS, EXPERTS), np.int64)
        counted = 0
        for position in range(len(request.prompt)):
            place = self.content[request.blocks[position // self.block_size]][position % self.block_size]
            assert place.prefix == tuple(request.prompt[: position + 1])
            if place.here:
                counted += 1
                for layer, experts in enumerate(experts_of(place.prefix)):
                    counts[layer, experts] += 1
        return counts, counted

    def _advance(self, shares: list[tuple[Request, int]]) -> None:
        for request, tokens in shares:
            request.computed += tokens
            if request.computed < len(request.tokens):
                continue
            request.tokens.append(self.rng.randrange(4))
            if len(request.tokens) - len(request.prompt) >= request.generate:
                self.running.remove(request)
                self._release(request.blocks)
                self.finished.append(request)

# SPDX-License-Identifier: Apache-2.0
"""Random schedules: what is answered equals what the engine truly computed, for every request and every
step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from eldr_vllm import wire
from eldr_vllm.scatter import Scatter
from eldr_vllm.table import CountsTable, Shape
from eldr_vllm.tracker import Part, Tracker
from engine import EXPERTS, LAYERS, TOP_K, Engine, Request

FEATURES: dict[str, dict[str, Any]] = {
    "plain": {},
    "tight": {"blocks": 9},
    "external": {"external": 0.6},
    "tight external": {"external": 0.6, "blocks": 12},
    "generating": {"generate": 12, "blocks": 14},
}


def run(seed: int, scatter: Scatter, blocks: int = 40, external: float = 0.0, generate: int = 1) -> Engine:
    rng = random.Random(seed)
    block_size = rng.choice((2, 4, 5))
    budget = rng.choice((3, 7, 16, 64))
    tracker = Tracker(block_size)
    engine = Engine(seed, blocks, block_size, budget, tracker)
    table = CountsTable(Shape(blocks, block_size, LAYERS, EXPERTS, TOP_K, budget), "cpu", scatter)
    longest = min(30, blocks * block_size // 2)
    stems = [[rng.randrange(4) for _ in range(longest)] for _ in range(3)]
    waiting = []
    for i in range(25):
        prompt = rng.choice(stems)[: rng.randrange(1, longest)] + [
            rng.randrange(4) for _ in range(rng.randrange(3))
        ]
        outside = rng.randrange(1, longest) if rng.random() < external else 0
        layers = tuple(rng.sample(range(LAYERS), 2)) if rng.random() < 0.3 else None
        waiting.append(
            Request(
                f"r{i}", tuple(prompt), rng.randrange(1, generate + 1), outside, rng.random() < 0.5, layers
            )
        )
    wanted = {r.name: r.layers or tuple(range(LAYERS)) for r in waiting}
    expected: dict[str, tuple[Any, int]] = {}
    checked = 0
    for _ in range(3000):
        while waiting and rng.random() < 0.4:
            engine.add(waiting.pop(0))
        if rng.random() < 0.02 and engine.waiting + engine.running:
            engine.abort(rng.choice(engine.waiting + engine.running))
        step = engine.step()
        plan = tracker.step(step.shares, step.copies)
        assert plan.tokens == len(step.slots)
        table.begin(plan)
        padded = step.ids + [np.zeros((LAYERS, TOP_K), np.int64)] * 2  # a padded batch
        for layer in range(LAYERS):
            table.capture(layer, torch.tensor(np.array([ids[layer] for ids in padded])))
        table.commit(torch.tensor([*step.slots, -1, -1], dtype=torch.long), plan.tokens)
        assert {end.request for end in plan.ending} == set(step.expected)
        expected.update(step.expected)
        if plan.ending:
            # Each selection of layers is passed on as indices, as the worker does.
            sums = table.totals([(end.blocks, end.layers) for end in plan.ending]).host()
            for end, counts in zip(plan.ending, sums, strict=True):
                layers = end.layers or tuple(range(LAYERS))
                tracker.take(end.request, Part(layers, counts, tuple(range(LAYERS)), TOP_K))
        while engine.finished:
            name = engine.finished.pop().name
            answer = tracker.finish(name)
            assert answer is not None
            counts, counted = expected.pop(name)
            assert "error" not in answer, answer
            assert answer["counted"] == counted
            assert answer["layers"] == list(wanted[name])
            np.testing.assert_array_equal(wire.decode(answer), counts[list(wanted[name])])
            checked += 1
        if not (waiting or engine.waiting or engine.running):
            break
    else:
        pytest.fail("the schedule did not end")
    assert checked > 10
    assert len(tracker) == 0
    return engine


@pytest.mark.parametrize("feature", FEATURES)
def test_answers_equal_what_was_computed(feature: str, scatter: Scatter) -> None:
    engines = [run(seed, scatter, **FEATURES[feature]) for seed in range(25)]
    # The schedules did contain what they are there for.
    assert sum(e.hits for e in engines) > 100
    assert sum(e.copies_made for e in engines) > 5
    if FEATURES[feature].get("blocks"):
        assert sum(e.evictions for e in engines) > 100
    if FEATURES[feature].get("generate"):
        assert sum(e.preemptions for e in engines) > 5

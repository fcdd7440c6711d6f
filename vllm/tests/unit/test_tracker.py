# SPDX-License-Identifier: Apache-2.0
"""The scheduler's side, case by case."""

from typing import Any

import numpy as np
import pytest

from eldr_vllm import wire
from eldr_vllm.tracker import Copy, Ending, Part, Scheduled, Tracker

PREFILL = {"do_remote_decode": True}
COUNTS = np.array([[2, 1, 1], [0, 2, 2]], np.int32)


def part(layers: tuple[int, ...] = (0, 1), counts: Any = COUNTS, **more: Any) -> Part:
    return Part(layers, counts, more.pop("available", layers), 2, **more)


def started(tokens: int = 6, local: int = 0, params: Any = PREFILL, block_size: int = 4) -> Tracker:
    tracker = Tracker(block_size)
    tracker.looked_up("a", tokens, local, params)
    tracker.allocated("a", [7, 8])
    return tracker


def test_prompt_in_one_step() -> None:
    tracker = started()
    plan = tracker.step([Scheduled("a", 0, 6, [7, 8])])
    assert plan.tokens == 6
    assert plan.fresh == (7, 8)
    assert plan.ending == (Ending("a", (7, 8), None),)


def test_chunks_end_once_and_blocks_are_fresh_once() -> None:
    tracker = started()
    assert tracker.step([Scheduled("a", 0, 3, [7])]).fresh == (7, 8)
    second = tracker.step([Scheduled("a", 3, 3, [7, 8])])
    assert (second.fresh, len(second.ending)) == ((), 1)
    assert tracker.step([Scheduled("a", 6, 1, [7, 8])]).ending == ()


def test_prefix_hit_keeps_the_rows_of_whole_blocks() -> None:
    assert started(local=4).step([Scheduled("a", 4, 2, [7, 8])]).fresh == (8,)


def test_only_prompt_blocks_are_summed() -> None:
    plan = started().step([Scheduled("a", 0, 6, [7, 8, 9])])
    assert plan.ending[0].blocks == (7, 8)


def test_resumed_request_that_generated_tokens_is_not_summed_again() -> None:
    tracker = started()
    tracker.step([Scheduled("a", 0, 6, [7, 8])])
    tracker.take("a", part())
    tracker.looked_up("a", 6, 0, PREFILL)
    tracker.allocated("a", [3, 4])
    assert tracker.step([Scheduled("a", 0, 8, [3, 4])]).ending == ()
    assert "error" not in (tracker.finish("a") or {})


def test_prompt_computed_again_replaces_the_counts() -> None:
    tracker = started()
    tracker.step([Scheduled("a", 0, 6, [7, 8])])
    tracker.take("a", part(counts=np.array([[3, 0, 1], [1, 1, 2]], np.int32)))
    assert len(tracker.step([Scheduled("a", 4, 2, [7, 8])]).ending) == 1
    tracker.take("a", part())
    np.testing.assert_array_equal(wire.decode(tracker.finish("a") or {}), COUNTS)


def test_loaded_tail_is_told() -> None:
    """5 of 6 tokens came from elsewhere: block 8 begins with a token that is not counted."""
    assert started().step([Scheduled("a", 5, 1, [7, 8])]).loaded == ((8, 1),)


def test_copied_tail_is_told() -> None:
    plan = started(local=4).step([Scheduled("a", 5, 1, [7, 8])], copies=[(3, 8)])
    assert (plan.copies, plan.loaded) == ((Copy(3, 8, 1),), ())


def test_nothing_for_requests_that_did_not_ask() -> None:
    tracker = started(params=None)
    assert tracker.step([Scheduled("a", 0, 6, [7, 8])]).ending == ()
    assert tracker.finish("a") is None
    assert tracker.finish("unknown") is None


def test_always() -> None:
    tracker = Tracker(4, always=True)
    tracker.looked_up("a", 2, 0, None)
    tracker.allocated("a", [1])
    assert len(tracker.step([Scheduled("a", 0, 2, [1])]).ending) == 1


def test_answer() -> None:
    tracker = started(tokens=2)
    tracker.take("a", part())
    answer = tracker.finish("a") or {}
    assert (answer["layers"], answer["tokens"], answer["counted"]) == ([0, 1], 2, 2)
    np.testing.assert_array_equal(wire.decode(answer), COUNTS)
    assert len(tracker) == 0


def test_asked_layers_in_the_asked_order() -> None:
    tracker = started(tokens=2, params={**PREFILL, "eldr": {"layers": [5, 3]}})
    assert tracker.step([Scheduled("a", 0, 2, [7, 8])]).ending[0].layers == (5, 3)
    tracker.take("a", part(layers=(3, 5), available=(3, 4, 5)))
    answer = tracker.finish("a") or {}
    assert answer["layers"] == [5, 3]
    np.testing.assert_array_equal(wire.decode(answer), COUNTS[::-1])


@pytest.mark.parametrize(
    ("params", "parts", "workers", "text"),
    [
        (PREFILL, [], 1, "had not arrived"),
        (PREFILL, [part()], 2, "1 of 2 pipeline stages"),
        (PREFILL, [part(error="broken kernel")], 1, "broken kernel"),
        (PREFILL, [part(counts=np.zeros((2, 3), np.int32))], 1, "no expert ids"),
        (PREFILL, [part(), part(layers=(2,), counts=np.zeros((1, 3), np.int32))], 2, "disagree"),
        (
            {**PREFILL, "eldr": {"layers": [9]}},
            [part(layers=(), available=(0, 1, 2, 5))],
            1,
            "9 .* 0-2, 5",
        ),
        ({**PREFILL, "eldr": {"layers": ["x"]}}, [part()], 1, "'x'"),
    ],
)
def test_no_counts_but_a_reason(params: Any, parts: list[Part], workers: int, text: str) -> None:
    tracker = started(tokens=2, params=params)
    for one in parts:
        tracker.take("a", one)
    answer = tracker.finish("a", workers) or {}
    with pytest.raises(wire.WireError, match=text):
        wire.decode(answer)
    assert "counts" not in answer


def test_pipeline_stages_are_put_together() -> None:
    tracker = started(tokens=2)
    tracker.take("a", part(layers=(4,), counts=COUNTS[1:]))
    tracker.take("a", part(layers=(2,), counts=COUNTS[:1]))
    answer = tracker.finish("a", 2) or {}
    assert answer["layers"] == [2, 4]
    np.testing.assert_array_equal(wire.decode(answer), COUNTS)


def test_params_that_are_no_object() -> None:
    tracker = Tracker(4)
    tracker.looked_up("a", 2, 0, ["do_remote_decode"])  # type: ignore[arg-type]
    assert tracker.finish("a") is None

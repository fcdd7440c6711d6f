# SPDX-License-Identifier: Apache-2.0
"""Counts that contradict themselves are never answered."""

from typing import Any

import numpy as np
import pytest

from eldr_vllm.verify import NotTrustworthy, counted_tokens


def real(tokens: int, layers: int = 3, experts: int = 8, top_k: int = 2, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    counts = np.zeros((layers, experts), np.int64)
    for layer in range(layers):
        for _ in range(tokens):
            counts[layer, rng.choice(experts, top_k, replace=False)] += 1
    return counts


@pytest.mark.parametrize("tokens", [1, 5, 200])
def test_real_counts_pass(tokens: int) -> None:
    assert counted_tokens(real(tokens), [0, 1, 2], 2, 200) == tokens


def test_zeros() -> None:
    with pytest.raises(NotTrustworthy, match="no expert ids"):
        counted_tokens(np.zeros((3, 8), np.int64), [0, 1, 2], 2, 10)


def test_a_silent_layer_is_named() -> None:
    counts = real(10)
    counts[1] = 0
    with pytest.raises(NotTrustworthy, match=r"layer 4 saw 20 choices, layer 5 saw 0"):
        counted_tokens(counts, [4, 5, 6], 2, 10)


def test_a_layer_that_missed_one_token() -> None:
    counts = real(10)
    counts[2] = real(9, seed=5)[2]
    with pytest.raises(NotTrustworthy, match="disagree"):
        counted_tokens(counts, [0, 1, 2], 2, 10)


def test_more_tokens_than_the_prompt_has() -> None:
    with pytest.raises(NotTrustworthy, match="11 tokens counted for a prompt of 10"):
        counted_tokens(real(11), [0, 1, 2], 2, 10)


def test_kernel_that_reports_zeros_for_ids() -> None:
    counts = np.zeros((3, 8), np.int64)
    counts[:, 0] = 2 * 10
    with pytest.raises(NotTrustworthy, match="twice for one token"):
        counted_tokens(counts, [0, 1, 2], 2, 10)


def test_kernel_that_reports_zeros_for_ids_with_top_1() -> None:
    counts = np.zeros((3, 8), np.int64)
    counts[:, 0] = 100
    with pytest.raises(NotTrustworthy, match="expert 0"):
        counted_tokens(counts, [0, 1, 2], 1, 100)


def test_half_a_token() -> None:
    counts = np.zeros((1, 8), np.int64)
    counts[0, :3] = 1
    with pytest.raises(NotTrustworthy, match="no multiple"):
        counted_tokens(counts, [0], 2, 10)

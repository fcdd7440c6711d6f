# SPDX-License-Identifier: Apache-2.0
"""The wire format, field by field."""

import base64
import json
from typing import Any

import numpy as np
import pytest

from eldr_vllm import wire


def test_known_bytes() -> None:
    answer = wire.encode(np.array([[1, 0, 258], [0, 2, 257]]), [3, 1], 259, 259)
    assert answer == {
        "v": 1,
        "experts": 3,
        "layers": [3, 1],
        "dtype": "u16",
        "counts": base64.b64encode(bytes([1, 0, 0, 0, 2, 1, 0, 0, 2, 0, 1, 1])).decode(),
        "tokens": 259,
        "counted": 259,
    }


@pytest.mark.parametrize(("most", "dtype"), [(65535, "u16"), (65536, "u32")])
def test_narrowest_type_that_holds_the_counts(most: int, dtype: str) -> None:
    counts = np.array([[0, most]], np.int32)
    answer = json.loads(json.dumps(wire.encode(counts, [0], most, most)))
    assert answer["dtype"] == dtype
    np.testing.assert_array_equal(wire.decode(answer), counts)


def test_any_counts_come_back() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        shape = tuple(rng.integers(1, 40, 2))
        counts = rng.integers(0, int(rng.integers(1, 200000)), shape)
        answer = wire.encode(counts, range(shape[0]), 1, 1)
        np.testing.assert_array_equal(wire.decode(answer), counts)


def test_non_contiguous_counts() -> None:
    counts = np.arange(12).reshape(3, 4).T
    np.testing.assert_array_equal(wire.decode(wire.encode(counts, range(4), 1, 1)), counts)


@pytest.mark.parametrize("counts", [np.zeros(3, int), np.zeros((2, 3), int), np.array([[-1, 1]])])
def test_wrong_counts_are_refused(counts: Any) -> None:
    with pytest.raises(wire.WireError):
        wire.encode(counts, [0], 1, 1)


@pytest.mark.parametrize("params", [None, {}, {"do_remote_decode": True}, {"eldr": None}, {"eldr": {}}])
def test_no_layers_asked(params: Any) -> None:
    assert wire.parse_request(params) is None


def test_layers_asked_keep_their_order() -> None:
    assert wire.parse_request({"eldr": {"layers": [7, 0, 3]}}) == (7, 0, 3)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (3, "eldr is int"),
        ({"layers": "0,1"}, "layers is str"),
        ({"layers": {"0": 1}}, "layers is dict"),
        ({"layers": []}, "0 entries"),
        ({"layers": [0] * 5000}, "5000 entries"),
        ({"layers": [0, -1]}, "-1"),
        ({"layers": [True]}, "True"),
        ({"layers": [1.5]}, "1.5"),
        ({"layers": ["1"]}, "'1'"),
        ({"layers": [2, 2]}, "twice"),
    ],
)
def test_malformed_wishes_are_named(asked: Any, text: str) -> None:
    with pytest.raises(wire.WireError, match=text):
        wire.parse_request({"eldr": asked})


def test_refusal_carries_no_counts() -> None:
    refusal = wire.refusal("because")
    assert refusal == {"v": 1, "error": "because"}
    with pytest.raises(wire.WireError, match="because"):
        wire.decode(refusal)


@pytest.mark.parametrize(
    "change", [{"v": 2}, {"dtype": "f32"}, {"counts": "AAA="}, {"experts": 9}, {"layers": [1, 2, 3]}]
)
def test_malformed_answers_are_refused(change: dict[str, Any]) -> None:
    answer = {**wire.encode(np.ones((2, 4), int), [0, 1], 2, 2), **change}
    with pytest.raises(wire.WireError):
        wire.decode(answer)

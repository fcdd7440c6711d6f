# SPDX-License-Identifier: Apache-2.0
"""The format of `kv_transfer_params.eldr`: what a router may ask for, and the counts that go back. Numpy
only.

Asked (optional): {"layers": [model layer numbers, in the order wanted]}
Answered: {"v": 1, "experts": E, "layers": [...], "dtype": "u16" | "u32", "counts": base64 of [len(layers), E]
row-major little-endian, "tokens": prompt tokens, "counted": prompt tokens whose experts are in the counts}
Answered when there are none: {"v": 1, "error": reason}. A router treats that as "no signal".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

VERSION = 1
KEY = "eldr"
MAX_LAYERS_ASKED = 4096
_DTYPES: dict[str, np.dtype[Any]] = {"u16": np.dtype("<u2"), "u32": np.dtype("<u4")}


class WireError(ValueError):
    """The text names the field, the value and what is allowed."""


def parse_request(params: Mapping[str, Any] | None) -> tuple[int, ...] | None:
    """The layers asked for in a request's kv_transfer_params, or None for all of them."""
    asked = (params or {}).get(KEY)
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        raise WireError(f"kv_transfer_params.eldr is {type(asked).__name__}; it must be an object")
    layers = asked.get("layers")
    if layers is None:
        return None
    if not isinstance(layers, Sequence) or isinstance(layers, str | bytes):
        raise WireError(f"kv_transfer_params.eldr.layers is {type(layers).__name__}; it must be a list")
    if not layers or len(layers) > MAX_LAYERS_ASKED:
        raise WireError(
            f"kv_transfer_params.eldr.layers has {len(layers)} entries; 1 to {MAX_LAYERS_ASKED} are allowed"
        )
    for layer in layers:
        if isinstance(layer, bool) or not isinstance(layer, int) or layer < 0:
            raise WireError(
                f"kv_transfer_params.eldr.layers contains {layer!r}; model layer numbers are integers from 0"
            )
    if len(set(layers)) != len(layers):
        raise WireError("kv_transfer_params.eldr.layers names a layer twice")
    return tuple(layers)


def encode(
    counts: npt.NDArray[np.integer[Any]], layers: Sequence[int], tokens: int, counted: int
) -> dict[str, Any]:
    """counts: [len(layers), experts], none negative. The result survives JSON and msgpack."""
    if counts.ndim != 2 or counts.shape[0] != len(layers):
        raise WireError(f"counts have shape {counts.shape} for {len(layers)} layers")
    if counts.size and int(counts.min()) < 0:
        raise WireError("counts contain a negative number")
    name = "u16" if not counts.size or int(counts.max()) <= 0xFFFF else "u32"
    return {
        "v": VERSION,
        "experts": int(counts.shape[1]),
        "layers": [int(layer) for layer in layers],
        "dtype": name,
        "counts": base64.b64encode(np.ascontiguousarray(counts, dtype=_DTYPES[name]).tobytes()).decode(
            "ascii"
        ),
        "tokens": int(tokens),
        "counted": int(counted),
    }


def refusal(reason: str) -> dict[str, Any]:
    """What is answered when there are no trustworthy counts."""
    return {"v": VERSION, "error": reason}


def decode(answer: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """The counts [layers, experts] of an answer; for tests and tools. Raises WireError for anything
    malformed."""
    if answer.get("v") != VERSION:
        raise WireError(f"v is {answer.get('v')!r}; {VERSION} is understood")
    if "error" in answer:
        raise WireError(f"no counts: {answer['error']}")
    dtype = _DTYPES.get(answer["dtype"])
    if dtype is None:
        raise WireError(f"dtype is {answer['dtype']!r}; u16 and u32 are allowed")
    raw = base64.b64decode(answer["counts"], validate=True)
    shape = (len(answer["layers"]), int(answer["experts"]))
    if len(raw) != shape[0] * shape[1] * dtype.itemsize:
        raise WireError(f"counts have {len(raw)} bytes; {shape} of {answer['dtype']} are needed")
    counts: npt.NDArray[np.int64] = np.frombuffer(raw, dtype).reshape(shape).astype(np.int64)
    return counts

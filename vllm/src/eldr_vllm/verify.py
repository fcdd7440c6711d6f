# SPDX-License-Identifier: Apache-2.0
"""Can these counts be true? A capture that broke must answer "no counts", never zeros or numbers of another
request. Numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class NotTrustworthy(ValueError):
    """The text says what is wrong with the counts."""


def counted_tokens(
    counts: npt.NDArray[np.integer[Any]], layers: Sequence[int], top_k: int, tokens: int
) -> int:
    """Number of prompt tokens in counts [layers, experts]; raises NotTrustworthy when the counts contradict
    themselves.

    Every token adds exactly top_k to each layer and at most 1 to an expert. From that follow all checks:
    layers must agree, sums are multiples of top_k, no expert has more than there are tokens, and there are no
    more tokens than the prompt has. A kernel that reports zeros instead of ids (all of a token's ids equal)
    breaks the third rule for top_k > 1.
    """
    sums = counts.sum(axis=1, dtype=np.int64)
    if not sums.any():
        raise NotTrustworthy(
            "no expert ids reached the capture (compiled model on a CPU, or a kernel that does not report "
            "its ids)"
        )
    if (sums != sums[0]).any():
        odd = int(np.flatnonzero(sums != sums[0])[0])
        raise NotTrustworthy(
            f"layers disagree: layer {layers[0]} saw {int(sums[0])} choices, layer {layers[odd]} saw "
            f"{int(sums[odd])}"
        )
    counted, rest = divmod(int(sums[0]), top_k)
    if rest:
        raise NotTrustworthy(f"{int(sums[0])} choices are no multiple of top-{top_k}")
    if counted > tokens:
        raise NotTrustworthy(f"{counted} tokens counted for a prompt of {tokens}")
    if int(counts.max()) > counted:
        raise NotTrustworthy("an expert was chosen twice for one token: the kernel's ids are not real")
    if top_k == 1 and counts.shape[1] > 1 and counted >= 64 and bool((counts[:, 0] == counted).all()):
        raise NotTrustworthy("every token of every layer chose expert 0: the kernel's ids are not real")
    return counted

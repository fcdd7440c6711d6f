# SPDX-License-Identifier: Apache-2.0
"""EldrConnector as it works where attention runs inside a CUDA graph: save_kv_layer is not called then."""

from __future__ import annotations

from typing import Any

from eldr_vllm.connector import EldrConnector


class ForwardContextConnector(EldrConnector):
    """Loaded by a server of the tests through kv_connector_module_path."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        pass

# SPDX-License-Identifier: Apache-2.0
"""EldrConnector beside a vLLM of a version that nobody tested."""

from __future__ import annotations

import vllm

from eldr_vllm.connector import EldrConnector

vllm.__version__ = "0.99.0"


class UntestedVersionConnector(EldrConnector):
    """Loaded by a server of the tests through kv_connector_module_path."""

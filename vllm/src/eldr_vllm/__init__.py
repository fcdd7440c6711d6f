# SPDX-License-Identifier: Apache-2.0
"""Expert counts of prompts from a vLLM prefill worker.

The connector `eldr_vllm.connector.EldrConnector` moves no KV cache. It counts, for every block of the KV
cache, how often each expert of each MoE layer was chosen for the block's tokens, and puts a request's sum
into `kv_transfer_params.eldr` of the answer.

Modules that need neither vLLM nor a GPU: wire, tracker, verify, options (numpy or nothing), table, scatter
(torch).
"""

__version__ = "0.1.0"

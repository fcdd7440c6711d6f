# SPDX-License-Identifier: Apache-2.0
"""Traces of any size for benchmarks: expert use that depends on the domain of a request, as recorded models show it.

Each layer has a popularity of experts (log-normal), each domain tilts it, each request tilts it again; prompt and decode tokens draw
top_k experts from the result. Some layers tell domains apart and some do not, so that layer selection has a choice.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file


def make_trace(
    path: Path, requests: int, layers: int, experts: int, top_k: int = 8, domains: int = 8, seed: int = 1
) -> None:
    rng = np.random.default_rng(seed)
    domain = rng.integers(0, domains, requests)
    prompt_tokens = rng.integers(64, 1024, requests).astype(np.uint32)
    decode_tokens = rng.integers(64, 256, requests).astype(np.uint32)
    prefill = np.empty((requests, layers, experts), np.uint32)
    decode = np.empty((requests, layers, experts), np.uint32)
    for layer in range(layers):
        contrast = rng.uniform(0.1, 1.2)  # how much this layer minds the domain
        popularity = rng.normal(0, 0.8, experts)
        tilt = rng.normal(0, contrast, (domains, experts))
        own = rng.normal(0, 0.4, (requests, experts))
        logits = popularity + tilt[domain] + own
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        prefill[:, layer] = draw(rng, share, prompt_tokens, top_k)
        decode[:, layer] = draw(rng, share, decode_tokens, top_k)
    metadata = {
        "format": "eldr-trace/1",
        "model": "synthetic",
        "layers": json.dumps(list(range(layers))),
        "experts": str(experts),
        "top_k": str(top_k),
        "labels": json.dumps([f"domain-{d}" for d in domain]),
    }
    tensors = {
        "prefill_counts": prefill,
        "decode_counts": decode,
        "prompt_tokens": prompt_tokens,
        "decode_tokens": decode_tokens,
    }
    save_file(tensors, str(path), metadata=metadata)


def draw(rng: np.random.Generator, share: np.ndarray, tokens: np.ndarray, top_k: int) -> np.ndarray:
    """Counts of `tokens` tokens with top_k picks each. A token picks an expert at most once: what is above the tokens is cut."""
    counts = rng.multinomial(tokens.astype(np.int64) * top_k, share)
    return np.minimum(counts, tokens[:, None]).astype(np.uint32)

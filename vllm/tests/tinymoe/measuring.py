# SPDX-License-Identifier: Apache-2.0
"""How far a prompt's experts foretell its answer's, and what batches of one domain save: by HF transformers,
on prompts that the training has not seen."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from corpus import pair_of, prompts

REQUESTS, PROMPT_TOKENS, ANSWER_TOKENS, AT_A_TIME = 180, 64, 40, 30
DECODE_BATCHES, DRAWS = (4, 8), 1000
DOMAINS, LANGUAGES = ("code", "legal", "math", "medical"), ("de", "en", "fr")
Seen = npt.NDArray[np.int64]
"""[requests, layers, tokens, top_k]: the experts of each token."""


def measure(folder: Path, requests: int = REQUESTS, seed: int = 99) -> dict[str, Any]:
    kept, prefill, decode = observe(folder, prompts(3 * requests, seed, held_out=True), requests, seed)
    experts = int(max(prefill.max(), decode.max())) + 1
    domain, language = np.array([r["domain"] for r in kept]), np.array([r["language"] for r in kept])
    pair = np.array([r["pair"] for r in kept])
    before, after = _counts(prefill, experts), _counts(decode, experts)
    p, d = (counts / counts.sum(axis=2, keepdims=True) for counts in (before, after))
    cosine = _unit(before) @ _unit(after).T
    another = ~np.eye(len(kept), dtype=bool)
    same_domain, same_language = domain[:, None] == domain, language[:, None] == language
    return {
        "requests": len(kept),
        "groups": dict(sorted(Counter(pair.tolist()).items())),
        "correlation_all": float(np.corrcoef(p.reshape(-1), d.reshape(-1))[0, 1]),
        "correlation_within_expert_mean": _within_expert(p, d),
        "cosine_prefill_with_decode": {
            "own": float(np.diag(cosine).mean()),
            "same_domain_and_language": float(cosine[same_domain & same_language & another].mean()),
            "same_domain": float(cosine[same_domain & ~same_language].mean()),
            "same_language": float(cosine[~same_domain & same_language].mean()),
            "neither": float(cosine[~same_domain & ~same_language].mean()),
        },
        "busiest_expert_share": float((before.sum(0) / before.sum((0, 2))[:, None]).max()),
        "distinct_experts": {
            str(batch): {
                "same_domain_and_language": distinct(decode, pair, batch, seed),
                "same_domain": distinct(decode, domain, batch, seed),
                "same_language": distinct(decode, language, batch, seed),
                "mixed": distinct(decode, np.zeros(len(kept)), batch, seed),
            }
            for batch in DECODE_BATCHES
        },
    }


def observe(
    folder: Path, rows: Sequence[dict[str, str]], requests: int, seed: int
) -> tuple[list[dict[str, str]], Seen, Seen]:
    """`requests` of the rows, the experts of their prompts and of sampled answers."""
    import torch
    from transformers import AutoTokenizer, Qwen3MoeForCausalLM

    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    model = Qwen3MoeForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    model.set_experts_implementation("grouped_mm")
    top_k, layers = model.config.num_experts_per_tok, len(model.model.layers)
    chosen: list[list[npt.NDArray[np.int64]]] = [[] for _ in range(layers)]
    for layer in range(layers):

        def keep(module: Any, inputs: Any, output: Any, layer: int = layer) -> None:
            hidden = inputs[0].reshape(-1, inputs[0].shape[-1])
            scores = torch.nn.functional.linear(hidden, module.weight)
            chosen[layer].append(scores.topk(top_k, dim=-1).indices.numpy())

        model.model.layers[layer].mlp.gate.register_forward_hook(keep)
    kept, ids = _as_many_of_each_pair(rows, tokenizer, requests)
    prefill, decode = [], []
    for start in range(0, len(ids), AT_A_TIME):
        batch = torch.tensor(ids[start : start + AT_A_TIME])
        for experts in chosen:
            experts.clear()
        with torch.no_grad():
            model.generate(
                batch,
                attention_mask=torch.ones_like(batch),
                max_new_tokens=ANSWER_TOKENS,
                min_new_tokens=ANSWER_TOKENS,
                do_sample=True,
                temperature=0.8,
                pad_token_id=0,
            )
        # First came the whole prompts, then one token of each request a step.
        whole = np.stack([experts[0] for experts in chosen])
        prefill.append(whole.reshape(layers, len(batch), -1, top_k).swapaxes(0, 1))
        steps = np.stack([np.stack(experts[1:], axis=1) for experts in chosen])
        decode.append(steps.swapaxes(0, 1))
    return kept, np.concatenate(prefill), np.concatenate(decode)


def _as_many_of_each_pair(
    rows: Sequence[dict[str, str]], tokenizer: Any, requests: int
) -> tuple[list[dict[str, str]], list[list[int]]]:
    """Rows of at least PROMPT_TOKENS tokens and those tokens, as many of each domain in each language,
    so that what requests share does not depend on what there is most of."""
    pairs = [pair_of(domain, language) for domain, language in product(DOMAINS, LANGUAGES)]
    room = {pair: requests // len(pairs) for pair in pairs}
    kept: list[dict[str, str]] = []
    ids: list[list[int]] = []
    for row in rows:
        tokens = tokenizer(row["prompt"])["input_ids"][:PROMPT_TOKENS]
        if room.get(row["pair"], 0) > 0 and len(tokens) == PROMPT_TOKENS:
            room[row["pair"]] -= 1
            kept.append(row)
            ids.append(tokens)
    missing = {pair: left for pair, left in room.items() if left}
    if missing:
        raise ValueError(f"too few long prompts: {missing} more are needed")
    return kept, ids


def distinct(decode: Seen, groups: npt.NDArray[Any], batch: int, seed: int) -> float:
    """Mean number of distinct experts a layer in a step of `batch` requests of one group, each at a random
    token of its answer."""
    rng = random.Random(seed)
    big = [m for g in np.unique(groups) if len(m := np.flatnonzero(groups == g)) >= batch]
    found = []
    for _ in range(DRAWS):
        members = rng.sample(list(rng.choice(big)), batch)
        step = np.stack([decode[m][:, rng.randrange(decode.shape[2])] for m in members], axis=1)
        found.append(np.mean([len(np.unique(layer)) for layer in step]))
    return float(np.mean(found))


def _within_expert(p: npt.NDArray[Any], d: npt.NDArray[Any]) -> float:
    """Correlation over requests of an expert's share in prefill and in decode; mean of all that vary."""
    p, d = (x.reshape(len(x), -1) for x in (p, d))
    varies = (p.std(axis=0) > 0) & (d.std(axis=0) > 0)
    return float(np.mean([np.corrcoef(p[:, i], d[:, i])[0, 1] for i in np.flatnonzero(varies)]))


def _counts(seen: Seen, experts: int) -> npt.NDArray[np.int64]:
    """[requests, layers, experts]."""
    return np.stack([(seen == expert).sum(axis=(2, 3)) for expert in range(experts)], axis=2)


def _unit(counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flat = counts.reshape(len(counts), -1).astype(float)
    unit: npt.NDArray[np.float64] = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    return unit

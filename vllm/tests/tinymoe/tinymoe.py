# SPDX-License-Identifier: Apache-2.0
"""A small Qwen3-MoE whose experts specialise, trained in minutes on a CPU from the project's own prompts.

    tinymoe.py train FOLDER [--steps N] [--seed S]     writes model, tokenizer and training.json
    tinymoe.py measure FOLDER [--requests N]           writes and prints measures.json

Real models are too large to test with; random ones have no structure to route by. This one has what the
method needs: expert use that differs by domain and language, and a prompt's use that tells something of its
answer's. With ELDR_REAL_DATA set, real prompts join the generated ones. The same seed and steps give the
same model on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[3]
LAYERS, EXPERTS, TOP_K, HIDDEN, VOCABULARY = 4, 24, 4, 128, 1024
LENGTH, BATCH = 128, 16
PROMPT_TOKENS, ANSWER_TOKENS, MEASURE_BATCH = 96, 40, 30


def prompts(count: int, seed: int) -> list[dict[str, str]]:
    """Generated prompts, and as many real ones where there are any; each {"prompt", "label"}, label with the
    language."""
    scripts = ROOT / "tests" / "prompts"
    lines = _run(scripts / "generate.py", count, seed)
    rows = [{**json.loads(line), "source": "generated"} for line in lines]
    if os.environ.get("ELDR_REAL_DATA"):
        rows += [{**json.loads(line), "source": "real"} for line in _run(scripts / "real.py", count, seed)]
    return rows


def _run(script: Path, count: int, seed: int) -> list[str]:
    ran = subprocess.run(
        [sys.executable, str(script), "--count", str(count), "--seed", str(seed)],
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout.splitlines()


def train(folder: Path, steps: int, seed: int) -> None:
    import torch
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

    from tinymodels import save_tokenizer

    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    rows = prompts(3000, seed)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = save_tokenizer(folder, [row["prompt"] for row in rows], VOCABULARY)
    stream: list[list[int]] = [
        tokenizer(row["prompt"])["input_ids"] + [tokenizer.eos_token_id] for row in rows
    ]
    config = Qwen3MoeConfig(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        moe_intermediate_size=HIDDEN // 2,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        num_experts=EXPERTS,
        num_experts_per_tok=TOP_K,
        norm_topk_prob=True,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        max_position_embeddings=4096,
        output_router_logits=True,
        router_aux_loss_coef=0.02,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    model = Qwen3MoeForCausalLM(config)
    model.set_experts_implementation("grouped_mm")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    rng = random.Random(seed)
    losses: list[float] = []
    begin = time.monotonic()
    for step in range(steps):
        # Whole requests of one label each, so that a context stays in its domain as a served request does.
        batch = torch.tensor([_window(rng.choice(stream), rng) for _ in range(BATCH)])
        out = model(input_ids=batch, labels=batch)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(out.loss.detach()))
        if step % 50 == 0:
            print(
                f"step {step}: loss {np.mean(losses[-50:]):.3f}, {time.monotonic() - begin:.0f} s", flush=True
            )
    model.config.output_router_logits = False
    model.to(torch.bfloat16).save_pretrained(str(folder))
    (folder / "training.json").write_text(
        json.dumps(
            {
                "seed": seed,
                "steps": steps,
                "seconds": round(time.monotonic() - begin, 1),
                "first_loss": float(np.mean(losses[:20])),
                "last_loss": float(np.mean(losses[-20:])),
                "prompts": len(rows),
            }
        )
    )


def _window(tokens: list[int], rng: random.Random) -> list[int]:
    """LENGTH tokens from a prompt, from its beginning or inside; a short one is padded with what ends it."""
    start = rng.randrange(max(1, len(tokens) - LENGTH + 1))
    piece = tokens[start : start + LENGTH]
    return piece + [tokens[-1]] * (LENGTH - len(piece))


def measure(folder: Path, requests: int, seed: int = 99) -> dict[str, Any]:
    """Prefill against decode use of held-out prompts, and unions of experts in batches of one label against
    mixed ones."""
    import torch
    from transformers import AutoTokenizer, Qwen3MoeForCausalLM

    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    model = Qwen3MoeForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    chosen: list[list[npt.NDArray[np.int64]]] = [[] for _ in range(LAYERS)]
    for layer in range(LAYERS):

        def keep(module: Any, inputs: Any, output: Any, layer: int = layer) -> None:
            hidden = inputs[0].reshape(-1, HIDDEN)
            scores = torch.nn.functional.linear(hidden, module.weight)
            chosen[layer].append(scores.topk(TOP_K, dim=-1).indices.numpy())

        model.model.layers[layer].mlp.gate.register_forward_hook(keep)
    labels: list[str] = []
    languages: list[str] = []
    ids: list[list[int]] = []
    for row in prompts(3 * requests, seed):
        tokens = tokenizer(row["prompt"])["input_ids"][:PROMPT_TOKENS]
        if len(tokens) == PROMPT_TOKENS and len(ids) < requests:
            ids.append(tokens)
            labels.append(row["label"])
            languages.append(language_of(row["prompt"]))
    prefill, decode = [], []
    for start in range(0, len(ids), MEASURE_BATCH):
        batch = torch.tensor(ids[start : start + MEASURE_BATCH])
        for kept in chosen:
            kept.clear()
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
        # First the whole prompts, then one token of each request a step: [requests, layers, tokens, top_k].
        shape = (LAYERS, len(batch), -1, TOP_K)
        prefill.append(np.stack([kept[0] for kept in chosen]).reshape(shape).swapaxes(0, 1))
        later = np.stack([np.stack(kept[1:], axis=1) for kept in chosen])  # [layers, requests, tokens, top_k]
        decode.append(later.swapaxes(0, 1))
    return measures(labels, languages, np.concatenate(prefill), np.concatenate(decode), seed)


def language_of(prompt: str) -> str:
    """By the words that hardly any sentence of a language does without; good enough for the generated
    prompts."""
    words = prompt.lower().split()
    common = {
        "de": {"der", "die", "das", "und", "ist", "ein", "eine", "nicht", "mit", "den", "von", "für"},
        "fr": {"le", "la", "les", "et", "est", "un", "une", "des", "pour", "dans", "que", "du"},
        "en": {"the", "and", "is", "a", "of", "to", "in", "for", "that", "with", "on", "it"},
    }
    return max(common, key=lambda language: sum(word in common[language] for word in words))


def _counts(seen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """[requests, layers, tokens, top_k] -> [requests, layers, EXPERTS]."""
    counts = np.zeros((*seen.shape[:2], EXPERTS), np.int64)
    for expert in range(EXPERTS):
        counts[:, :, expert] = (seen == expert).sum(axis=(2, 3))
    return counts


def _unit(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flat = vectors.reshape(len(vectors), -1).astype(float)
    unit: npt.NDArray[np.float64] = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    return unit


def measures(
    labels: Sequence[str],
    languages: Sequence[str],
    prefill_seen: npt.NDArray[np.int64],
    decode_seen: npt.NDArray[np.int64],
    seed: int,
) -> dict[str, Any]:
    """From the experts of each token, [requests, layers, tokens, top_k]."""
    prefill, decode = _counts(prefill_seen), _counts(decode_seen)
    cosine = _unit(prefill) @ _unit(decode).T
    p = prefill / prefill.sum(axis=2, keepdims=True)
    d = decode / decode.sum(axis=2, keepdims=True)
    across = [
        np.corrcoef(p[:, layer, expert], d[:, layer, expert])[0, 1]
        for layer in range(LAYERS)
        for expert in range(EXPERTS)
        if p[:, layer, expert].std() > 0 and d[:, layer, expert].std() > 0
    ]
    label, language = np.array(labels), np.array(languages)
    not_self = ~np.eye(len(label), dtype=bool)
    same_label, same_language = label[:, None] == label, language[:, None] == language
    result: dict[str, Any] = {
        "requests": len(labels),
        "groups": dict(sorted(Counter(f"{a} {b}" for a, b in zip(labels, languages, strict=True)).items())),
        "correlation_all": float(np.corrcoef(p.reshape(-1), d.reshape(-1))[0, 1]),
        "correlation_within_expert_mean": float(np.mean(across)),
        "cosine_prefill_with_decode": {
            "own": float(np.diag(cosine).mean()),
            "same_domain_and_language": float(cosine[same_label & same_language & not_self].mean()),
            "same_language": float(cosine[~same_label & same_language].mean()),
            "same_domain": float(cosine[same_label & ~same_language].mean()),
            "neither": float(cosine[~same_label & ~same_language].mean()),
        },
        "busiest_expert_share": float((prefill.sum(0) / prefill.sum((0, 2))[:, None]).max()),
        "union": {},
    }
    groupings = {
        "same_domain_and_language": [f"{a} {b}" for a, b in zip(label, language, strict=True)],
        "same_language": list(languages),
        "same_domain": list(labels),
        "mixed": ["all"] * len(labels),
    }
    for batch in (4, 8):
        union = {}
        for name, group in groupings.items():
            rng = random.Random(seed)
            members = [np.flatnonzero(np.array(group) == g) for g in sorted(set(group))]
            big = [m for m in members if len(m) >= batch]
            picks = [rng.sample(list(rng.choice(big)), batch) for _ in range(1000)]
            union[name] = float(np.mean([_distinct(decode_seen, pick, rng) for pick in picks]))
        result["union"][str(batch)] = union
    return result


def _distinct(seen: npt.NDArray[np.int64], members: Sequence[int], rng: random.Random) -> float:
    """Distinct experts a layer when each request of a batch decodes a random token of its own answer."""
    picks = [seen[m][:, rng.randrange(seen.shape[2])] for m in members]
    return float(np.mean([len({int(e) for pick in picks for e in pick[layer]}) for layer in range(LAYERS)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=("train", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=180)
    given = parser.parse_args()
    if given.command == "train":
        train(given.folder, given.steps, given.seed)
    else:
        result = measure(given.folder, given.requests)
        (given.folder / "measures.json").write_text(json.dumps(result, indent=1))
        print(json.dumps(result, indent=1))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[3]
LAYERS, EXPERTS, TOP_K, HIDDEN, VOCABULARY = 4, 24, 4, 128, 1024
LENGTH, BATCH = 128, 16
PROMPT_TOKENS, ANSWER_TOKENS = 96, 40


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
    rows = [
        row
        for row in prompts(requests, seed)
        if len(tokenizer(row["prompt"])["input_ids"]) >= PROMPT_TOKENS // 2
    ]
    labels: list[str] = []
    prefill: list[npt.NDArray[np.int64]] = []
    decode: list[npt.NDArray[np.int64]] = []
    tokens: list[npt.NDArray[np.int64]] = []
    for row in rows:
        ids = tokenizer(row["prompt"])["input_ids"][:PROMPT_TOKENS]
        for kept in chosen:
            kept.clear()
        with torch.no_grad():
            model.generate(
                torch.tensor([ids]),
                attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                max_new_tokens=ANSWER_TOKENS,
                min_new_tokens=ANSWER_TOKENS,
                do_sample=True,
                temperature=0.8,
                pad_token_id=0,
            )
        seen = np.stack([np.concatenate(layer) for layer in chosen])  # [layers, tokens, top_k]
        labels.append(row["label"])
        prefill.append(_counts(seen[:, : len(ids)]))
        decode.append(_counts(seen[:, len(ids) :]))
        tokens.append(seen[:, len(ids) :])
    return _measures(labels, np.stack(prefill), np.stack(decode), tokens, seed)


def _counts(seen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.stack([np.bincount(layer.reshape(-1), minlength=EXPERTS) for layer in seen])


def _unit(vectors: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    flat = vectors.reshape(len(vectors), -1).astype(float)
    unit: npt.NDArray[np.float64] = flat / np.linalg.norm(flat, axis=1, keepdims=True)
    return unit


def _measures(
    labels: Sequence[str],
    prefill: npt.NDArray[np.int64],
    decode: npt.NDArray[np.int64],
    tokens: Sequence[npt.NDArray[np.int64]],
    seed: int,
) -> dict[str, Any]:
    label = np.array(labels)
    cosine = _unit(prefill) @ _unit(decode).T
    same = (label[:, None] == label[None, :]) & ~np.eye(len(label), dtype=bool)
    other = label[:, None] != label[None, :]
    p = prefill / prefill.sum(axis=2, keepdims=True)
    d = decode / decode.sum(axis=2, keepdims=True)
    across = [
        np.corrcoef(p[:, layer, expert], d[:, layer, expert])[0, 1]
        for layer in range(LAYERS)
        for expert in range(EXPERTS)
        if p[:, layer, expert].std() > 0 and d[:, layer, expert].std() > 0
    ]
    rng = random.Random(seed)
    groups = {name: np.flatnonzero(label == name) for name in sorted(set(labels))}
    result: dict[str, Any] = {
        "requests": len(labels),
        "labels": {name: len(members) for name, members in groups.items()},
        "correlation_all": float(np.corrcoef(p.reshape(-1), d.reshape(-1))[0, 1]),
        "correlation_within_expert_mean": float(np.mean(across)),
        "cosine_own_decode": float(np.diag(cosine).mean()),
        "cosine_same_label": float(cosine[same].mean()),
        "cosine_other_label": float(cosine[other].mean()),
        "busiest_expert_share": float((prefill.sum(0) / prefill.sum((0, 2))[:, None]).max()),
        "union": {},
    }
    for batch in (4, 8, 16):
        alike, mixed = [], []
        big = [members for members in groups.values() if len(members) >= batch]
        for _ in range(400):
            alike.append(_distinct(tokens, rng.sample(list(rng.choice(big)), batch), rng))
            mixed.append(_distinct(tokens, rng.sample(range(len(labels)), batch), rng))
        result["union"][str(batch)] = {"same_label": float(np.mean(alike)), "mixed": float(np.mean(mixed))}
    return result


def _distinct(tokens: Sequence[npt.NDArray[np.int64]], members: Sequence[int], rng: random.Random) -> float:
    """Distinct experts a layer when each request of a batch decodes a random token of its own answer."""
    picks = [tokens[m][:, rng.randrange(tokens[m].shape[1])] for m in members]
    return float(np.mean([len({int(e) for pick in picks for e in pick[layer]}) for layer in range(LAYERS)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=("train", "measure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=350)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=120)
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

# SPDX-License-Identifier: Apache-2.0
"""Trains the tiny Qwen3-MoE: next-token loss, balanced experts, and experts that tell domains apart.

Large models come to use other experts for other domains in the course of their training; one of a million
weights, trained for minutes, mostly learns to tell languages apart. The last term of the loss makes up for
that: it rewards the mutual information between a prompt's domain and the expert that its tokens get, as
Mod-Squad (Chen et al., CVPR 2023) does for tasks. The domain itself is no input of the model: the gates
have to read it from the text.
"""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from corpus import prompts, with_real_prompts
from tokenizing import save_tokenizer

LAYERS, EXPERTS, TOP_K, HIDDEN, VOCABULARY = 4, 32, 4, 128, 1024
PROMPTS, LENGTH, BATCH = 3000, 128, 16
STEPS, STEPS_WITH_REAL_PROMPTS = 300, 600
BALANCE, SPECIALISE = 0.02, 0.3
IGNORED = -100
"""Label of a place that has no loss, as PyTorch and transformers have it."""


def config() -> Qwen3MoeConfig:
    return Qwen3MoeConfig(
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
        router_aux_loss_coef=BALANCE,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        tie_word_embeddings=False,
    )


def train(folder: Path, seed: int) -> None:
    """Writes model, tokenizer and training.json into `folder`. The same seed gives the same model on the same
    machine."""
    steps = STEPS_WITH_REAL_PROMPTS if with_real_prompts() else STEPS
    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    rows = prompts(PROMPTS, seed)
    tokenizer = save_tokenizer(folder, [row["prompt"] for row in rows], VOCABULARY)
    ids = [tokenizer(row["prompt"])["input_ids"] + [tokenizer.eos_token_id] for row in rows]
    names = sorted({row["domain"] for row in rows})
    domains = torch.tensor([names.index(row["domain"]) for row in rows])

    model = Qwen3MoeForCausalLM(config())
    model.set_experts_implementation("grouped_mm")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    losses: list[float] = []
    begin = time.monotonic()
    for step, chosen in enumerate(_batches([row["pair"] for row in rows], seed, steps)):
        tokens, labels = _padded([ids[i] for i in chosen])
        out = model(input_ids=tokens, labels=labels)
        gates = torch.stack(out.router_logits).softmax(dim=-1)
        learned = mutual_information(gates, domains[chosen].repeat_interleave(LENGTH), len(names))
        (out.loss - SPECIALISE * learned).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(float(out.loss.detach()))
        if step % 50 == 49:
            print(
                f"tinymoe: step {step + 1} of {steps}, loss {np.mean(losses[-50:]):.3f}, "
                f"experts tell {float(learned.detach()):.2f} bits of the domain, "
                f"{time.monotonic() - begin:.0f} s",
                flush=True,
            )
    model.config.output_router_logits = False
    model.to(torch.bfloat16).save_pretrained(str(folder))
    said = {
        "seed": seed,
        "steps": steps,
        "seconds": round(time.monotonic() - begin, 1),
        "first_loss": float(np.mean(losses[:20])),
        "last_loss": float(np.mean(losses[-20:])),
        "prompts": len(rows),
    }
    (folder / "training.json").write_text(json.dumps(said, indent=1))


def mutual_information(gates: Any, groups: Any, count: int) -> Any:
    """Bits that a token's group tells of its expert, mean over layers. gates [layers, tokens, experts], each
    row a distribution; groups [tokens], 0 to count - 1."""
    overall = _entropy(gates.mean(dim=1))
    within = torch.zeros_like(overall)
    for group in range(count):
        members = groups == group
        if members.any():
            within = within + members.float().mean() * _entropy(gates[:, members].mean(dim=1))
    return (overall - within).mean()


def _entropy(p: Any) -> Any:
    return -(p * p.clamp_min(1e-9).log()).sum(dim=-1) / math.log(2)


def _batches(groups: Sequence[str], seed: int, steps: int) -> Iterator[list[int]]:
    """Rows of which each group is as likely, however many rows it has."""
    members: dict[str, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    rng = random.Random(seed)
    for _ in range(steps):
        yield [rng.choice(members[group]) for group in rng.choices(sorted(members), k=BATCH)]


def _padded(pieces: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """The beginnings of prompts, as served requests have them, padded with what ends them."""
    tokens = torch.tensor([[*piece[:LENGTH], *[piece[-1]] * (LENGTH - len(piece))] for piece in pieces])
    labels = tokens.clone()
    for row, piece in enumerate(pieces):
        labels[row, len(piece) :] = IGNORED
    return tokens, labels

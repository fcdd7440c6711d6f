# SPDX-License-Identifier: Apache-2.0
"""Tiny random MoE models of five architectures, and the truth of their expert choices by HF transformers.

Command line: tinymodels.py make KIND (prints its folder) | truth KIND FOLDER PROMPTS.json OUT.npz
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenizing import save_tokenizer

FOLDER = Path(__file__).resolve().parents[2] / "build" / "vllm-tests" / "models"
VOCABULARY = 512
TEXT = (
    "the quick brown fox jumps over the lazy dog",
    "def add(a, b): return a + b  # python code",
    "the plaintiff shall pay damages under section 4 of the act",
    "the patient was given 20 mg of aspirin twice daily",
    "let x be an integer such that x squared equals sixteen",
    "pack my box with five dozen liquor jugs",
)
EXPERTS, TOP_K = 16, 4
COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "initializer_range": 0.5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
DENSE_FIRST_LAYER: dict[str, Any] = {
    "moe_intermediate_size": 64,
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": TOP_K,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
}


@dataclass(frozen=True)
class Kind:
    """An architecture: its configuration class in transformers and what differs from COMMON."""

    config: str
    moe_layers: tuple[int, ...]
    options: dict[str, Any]
    dtype: str = "float32"
    """What vLLM for CPUs runs it in; DeepSeek's and gpt-oss's kernels exist in bfloat16 only."""
    near_tie: float = 2e-3
    """Choices whose logits are closer than this may go either way: the engine adds in another order, and in
    bfloat16 with fewer bits (logits have a spread of 3 and 6 there)."""


KINDS = {
    "qwen3": Kind(
        "Qwen3MoeConfig",
        (0, 1, 2, 3),
        {
            "moe_intermediate_size": 64,
            "num_experts": EXPERTS,
            "num_experts_per_tok": TOP_K,
            "norm_topk_prob": True,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        },
    ),
    "olmoe": Kind(
        "OlmoeConfig",
        (0, 1, 2),
        {
            "intermediate_size": 64,
            "num_hidden_layers": 3,
            "num_key_value_heads": 4,
            "num_experts": EXPERTS,
            "num_experts_per_tok": TOP_K,
            "norm_topk_prob": False,
        },
    ),
    # As DeepSeek-V3: dense first layer, shared expert, sigmoid gate with a correction bias.
    "glm4": Kind(
        "Glm4MoeConfig",
        (1, 2, 3),
        {
            **DENSE_FIRST_LAYER,
            "n_shared_experts": 1,
            "norm_topk_prob": True,
            "routed_scaling_factor": 1.0,
            "use_qk_norm": True,
        },
    ),
    # MLA, dense first layer, shared experts.
    "deepseek": Kind(
        "DeepseekV2Config",
        (1, 2, 3),
        {
            **DENSE_FIRST_LAYER,
            "num_key_value_heads": 4,
            "kv_lora_rank": 512,
            "q_lora_rank": None,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "head_dim": 64,
            "n_shared_experts": 2,
            "topk_method": "greedy",
            "norm_topk_prob": False,
            "routed_scaling_factor": 1.0,
            "aux_loss_alpha": 0.0,
        },
        dtype="bfloat16",
        near_tie=0.3,
    ),
    # Every other layer with a sliding window.
    "gptoss": Kind(
        "GptOssConfig",
        (0, 1, 2, 3),
        {
            "initializer_range": 0.3,
            "intermediate_size": 128,
            "num_local_experts": EXPERTS,
            "num_experts_per_tok": TOP_K,
            "sliding_window": 128,
            "initial_context_length": 4096,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 150000.0,
                "factor": 32.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "original_max_position_embeddings": 128,
                "truncate": False,
            },
        },
        dtype="bfloat16",
        near_tie=0.06,
    ),
    "dense": Kind("Qwen3Config", (), {"num_hidden_layers": 2}),
}


def make(kind: str) -> Path:
    """The folder of a model with random weights (seeded) and its tokenizer. It is made on first use, and anew
    when this file changes; it gets its name when it is whole."""
    import torch
    import transformers

    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:10]
    whole = FOLDER / f"{kind}-{made_by}"
    if whole.exists():
        return whole
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", suffix=".partial", dir=FOLDER))
    torch.manual_seed(1)
    save_tokenizer(folder, TEXT, VOCABULARY)
    config = getattr(transformers, KINDS[kind].config)(**{**COMMON, **KINDS[kind].options})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    if kind == "glm4":
        for name, buffer in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.data.copy_(torch.randn_like(buffer) * 0.1)
    if KINDS[kind].dtype == "bfloat16":
        # Small outputs of attention and experts keep the gates' inputs near the exact embeddings, so that few
        # choices depend on rounding.
        for name, weights in model.named_parameters():
            if any(part in name for part in ("o_proj", "down_proj", "q_proj")):
                weights.data.mul_(0.002)
    model.to(torch.bfloat16).save_pretrained(str(folder))
    folder.rename(whole)
    return whole


class Truth:
    """What a prompt's tokens choose, and how clear each choice is."""

    def __init__(self, ids: npt.NDArray[np.int64], margins: npt.NDArray[np.float64], experts: int) -> None:
        """ids [layers, tokens, top_k]; margins [layers, tokens]: last chosen logit less first not chosen."""
        self.ids, self.margins, self.experts = ids, margins, experts

    def counts(self, tokens: int | None = None) -> npt.NDArray[np.int64]:
        """[layers, experts] of the first `tokens` tokens."""
        part = self.ids[:, :tokens]
        return np.stack([np.bincount(layer.reshape(-1), minlength=self.experts) for layer in part])

    def allowance(self, margin: float) -> npt.NDArray[np.int64]:
        """[layers] how far (sum of absolute differences) counts may be off: 2 for each near tie."""
        near: npt.NDArray[np.int64] = (self.margins < margin).sum(axis=1).astype(np.int64)
        return 2 * near


def truth(kind: str, folder: Path, prompts: Sequence[Sequence[int]]) -> list[Truth]:
    """Runs the model in HF transformers, float32, a prompt at a time; reads each gate's logits."""
    import torch
    from transformers import AutoModelForCausalLM

    layers = KINDS[kind].moe_layers
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(
        str(folder), dtype=torch.float32, attn_implementation="eager"
    ).eval()
    logits: dict[int, Any] = {}

    def hook(number: int) -> Any:
        def keep(module: Any, inputs: Any, output: Any) -> None:
            # The gate's own arithmetic on what it was given: independent of how its class packs its results.
            hidden = inputs[0].reshape(-1, inputs[0].shape[-1]).float()
            bias = getattr(module, "bias", None)
            scores = torch.nn.functional.linear(
                hidden, module.weight.float(), None if bias is None else bias.float()
            )
            correction = getattr(module, "e_score_correction_bias", None)
            logits[number] = scores if correction is None else scores.sigmoid() + correction.float()

        return keep

    for number in layers:
        mlp = model.model.layers[number].mlp
        (mlp.router if hasattr(mlp, "router") else mlp.gate).register_forward_hook(hook(number))
    results = []
    for prompt in prompts:
        logits.clear()
        with torch.no_grad():
            model(torch.tensor([list(prompt)]))
        ids = np.empty((len(layers), len(prompt), TOP_K), np.int64)
        margins = np.empty((len(layers), len(prompt)))
        for i, number in enumerate(layers):
            values, best = logits[number].topk(TOP_K + 1, dim=-1)
            ids[i] = best[:, :TOP_K].numpy()
            margins[i] = (values[:, TOP_K - 1] - values[:, TOP_K]).numpy()
        results.append(Truth(ids, margins, EXPERTS))
    return results


def save_truth(results: Sequence[Truth], path: Path) -> None:
    arrays: dict[str, Any] = {"experts": np.array(results[0].experts)}
    for i, result in enumerate(results):
        arrays[f"ids{i}"], arrays[f"margins{i}"] = result.ids, result.margins
    np.savez(path, **arrays)


def load_truth(path: Path) -> list[Truth]:
    data = np.load(path)
    count = sum(1 for name in data.files if name.startswith("ids"))
    return [Truth(data[f"ids{i}"], data[f"margins{i}"], int(data["experts"])) for i in range(count)]


if __name__ == "__main__":
    if sys.argv[1] == "make":
        # Libraries say things on stdout.
        with contextlib.redirect_stdout(sys.stderr):
            made = make(sys.argv[2])
        print(made)
    else:
        asked = json.loads(Path(sys.argv[4]).read_text())
        save_truth(truth(sys.argv[2], Path(sys.argv[3]), asked), Path(sys.argv[5]))

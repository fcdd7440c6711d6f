# SPDX-License-Identifier: Apache-2.0
"""Finds the MoE layers of the loaded model and has each report the logical expert ids of its tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .support import Refused, logger
from .table import CountsTable


@dataclass(frozen=True)
class MoeLayers:
    """runners: vLLM's MoE layers by model layer number, ascending."""

    runners: tuple[Any, ...]
    numbers: tuple[int, ...]
    all_numbers: tuple[int, ...]
    experts: int
    top_k: int


def find(vllm_config: Any, only: tuple[int, ...] | None) -> MoeLayers | None:
    """None: this model has no MoE layer (or this pipeline stage has none). `only`: the layers to count.

    Layers of a draft model have numbers from the model's number of layers on and are left out.
    """
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

    context = vllm_config.compilation_config.static_forward_context
    depth = vllm_config.model_config.get_total_num_hidden_layers()
    found: dict[int, Any] = {}
    for module in context.values():
        if not isinstance(module, MoERunner) or module.layer_id >= depth:
            continue
        if found.setdefault(module.layer_id, module) is not module:
            raise Refused(
                f"eldr: layer {module.layer_id} has two MoE blocks; which one to count is not defined"
            )
    if not found:
        return None
    numbers = sorted(found)
    kept = [n for n in numbers if only is None or n in only]
    missing = sorted(set(only or ()) - set(numbers))
    if missing and vllm_config.parallel_config.pipeline_parallel_size == 1:
        raise Refused(
            f"eldr: kv_connector_extra_config.layers names layer {missing[0]}, which is no MoE layer; there "
            f"are {numbers}"
        )
    if not kept:
        return None
    shapes = {(found[n].moe_config.num_logical_experts, found[n].moe_config.experts_per_token) for n in kept}
    if len(shapes) != 1:
        raise Refused(f"eldr: MoE layers differ in (experts, top-k): {sorted(shapes)}; they must be alike")
    experts, top_k = shapes.pop()
    return MoeLayers(tuple(found[n] for n in kept), tuple(kept), tuple(numbers), int(experts), int(top_k))


def bind(layers: MoeLayers, table: CountsTable, dp_rank: int) -> None:
    """Chains the table's capture after any capture function that is there already. Refuses what cannot be
    seen."""
    from vllm.model_executor.layers.fused_moe.router.base_router import BaseRouter

    for index, (number, runner) in enumerate(zip(layers.numbers, layers.runners, strict=True)):
        if runner._quant_method.is_monolithic:
            kernel = getattr(getattr(runner._quant_method, "moe_kernel", None), "impl", None)
            experts = getattr(kernel, "fused_experts", None)
            supports = getattr(experts, "supports_routing_replay_capture", None)
            if experts is None or supports is None or not supports():
                raise Refused(
                    f"eldr: layer {number} runs the monolithic MoE kernel "
                    f"{type(experts or runner._quant_method).__name__}, which does not report expert ids. "
                    "Choose another one (--moe-backend), see vLLM's log for the present choice"
                )
            target, previous = experts, getattr(experts, "routing_replay_capture_fn", None)
        elif isinstance(runner.router, BaseRouter):
            target, previous = runner.router, runner.router.capture_fn
        else:
            raise Refused(
                f"eldr: layer {number} has the router {type(runner.router).__name__}, which reports no "
                "expert ids"
            )
        target.set_capture_fn(_chained(previous, table, index, dp_rank))


def _chained(
    previous: Callable[[torch.Tensor], None] | None, table: CountsTable, index: int, dp_rank: int
) -> Callable[[torch.Tensor], None]:
    from vllm.forward_context import get_forward_context

    warned: list[int] = []

    def capture(topk_ids: torch.Tensor) -> None:
        if previous is not None:
            previous(topk_ids)
        data_parallel = get_forward_context().dp_metadata
        if data_parallel is None:
            table.capture(index, topk_ids)
            return
        # With data parallelism the layer may see its own rank's tokens or those of all ranks one after
        # another.
        ranks = data_parallel.num_tokens_across_dp_cpu
        mine, total, seen = int(ranks[dp_rank]), int(ranks.sum()), topk_ids.shape[0]
        if seen == mine:
            table.capture(index, topk_ids)
        elif seen == total:
            start = int(ranks[:dp_rank].sum())
            table.capture(index, topk_ids[start : start + mine])
        elif not warned:  # ids stay -1, and the answer says that there are no counts
            warned.append(seen)
            logger.error(
                "eldr: MoE layer %d got %d tokens, neither this rank's %d nor all %d: sequence-parallel MoE "
                "is not supported",
                index,
                seen,
                mine,
                total,
            )

    return capture

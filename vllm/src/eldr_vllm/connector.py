# SPDX-License-Identifier: Apache-2.0
"""The KV connector that moves no KV: it returns a request's prefill expert counts in
`kv_transfer_params.eldr`.

It stands beside the transport under MultiConnector, never loads, never delays the freeing of blocks.
Scheduler side: Tracker. Worker side: CountsTable. Only the first tensor-parallel rank of each pipeline stage
counts; all ranks choose the same experts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import vllm
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    KVConnectorWorkerMetadata,
    SupportsHMA,
)

from . import binding, support, wire
from .native import choose_scatter
from .options import Options
from .support import Refused, logger
from .table import CountsTable, Shape, Totals
from .tracker import Part, Plan, Scheduled, Tracker

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig
    from vllm.v1.outputs import KVConnectorOutput
    from vllm.v1.request import Request


@dataclass
class EldrMetadata(KVConnectorMetadata):
    """Scheduler to worker, each step."""

    plan: Plan = field(default_factory=Plan)


class EldrWorkerMetadata(KVConnectorWorkerMetadata):
    """Worker to scheduler: parts by request. Sums are waited for when this is pickled or read, not before."""

    def __init__(
        self, parts: dict[str, list[Part]], pending: tuple[list[tuple[str, Part]], Totals] | None = None
    ) -> None:
        self._parts = parts
        self._pending = pending

    @property
    def parts(self) -> dict[str, list[Part]]:
        if self._pending is not None:
            waiting, totals = self._pending
            self._pending = None
            for (request, part), counts in zip(waiting, totals.host(), strict=True):
                part.counts = counts
                self._parts.setdefault(request, []).append(part)
        return self._parts

    def __reduce__(self) -> tuple[Any, ...]:
        return EldrWorkerMetadata, (self.parts,)

    def aggregate(self, other: KVConnectorWorkerMetadata) -> KVConnectorWorkerMetadata:
        assert isinstance(other, EldrWorkerMetadata)
        for request, parts in other.parts.items():
            self.parts.setdefault(request, []).extend(parts)
        return self


class EldrConnector(KVConnectorBase_V1, SupportsHMA):
    """`kv_connector_module_path` of --kv-transfer-config points here; options: see options.Options."""

    def __init__(
        self, vllm_config: VllmConfig, role: KVConnectorRole, kv_cache_config: KVCacheConfig
    ) -> None:
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        self._options = Options.parse(self._kv_transfer_config.kv_connector_extra_config)
        support.check_config(vllm_config)
        self._group = support.attention_group(kv_cache_config)
        group = kv_cache_config.kv_cache_groups[self._group]
        self._block_size = int(group.kv_cache_spec.block_size)
        self._attention_layers = frozenset(group.layer_names)
        self._stages = int(vllm_config.parallel_config.pipeline_parallel_size)
        self._tracker: Tracker | None = None
        if role == KVConnectorRole.SCHEDULER:
            support.warn_of_version(vllm.__version__)
            support.check_scheduler(vllm_config)
            self._tracker = Tracker(self._block_size, self._options.always)
        self._table: CountsTable | None = None
        self._layers: binding.MoeLayers | None = None
        self._slots: torch.Tensor | None = None
        self._fault: str | None = None
        self._results: EldrWorkerMetadata | None = None

    @property
    def requires_kv_delivery(self) -> bool:
        return False

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: dict[str, Any]) -> bool:
        return not Options.parse(extra_config).full_cuda_graphs

    # ------------------------------------------------------------ worker
    def register_kv_caches(self, kv_caches: dict[str, torch.Tensor]) -> None:
        from vllm.distributed.parallel_state import get_tp_group

        layers = binding.find(self._vllm_config, self._options.layers)
        if layers is None:
            if self._stages == 1:
                raise Refused(
                    f"eldr: {self._vllm_config.model_config.model} has no MoE layer that vLLM runs with its "
                    "fused MoE code: there is nothing to count. Remove EldrConnector from "
                    "--kv-transfer-config"
                )
            logger.warning("eldr: this pipeline stage has no MoE layer to count")
            return
        if get_tp_group().rank_in_group != 0:
            return
        device = _device_of(kv_caches)
        speculative = self._vllm_config.speculative_config
        shape = Shape(
            blocks=self._kv_cache_config.num_blocks,
            block_size=self._block_size,
            layers=len(layers.numbers),
            experts=layers.experts,
            top_k=layers.top_k,
            tokens=self._vllm_config.scheduler_config.max_num_batched_tokens,
            rejected_per_token=int(speculative.num_speculative_tokens or 0) if speculative is not None else 0,
        )
        shape.check()
        self._check_memory(shape, device)
        scatter = choose_scatter(self._options.scatter, device)
        table = CountsTable(shape, device, scatter)
        binding.bind(layers, table, self._vllm_config.parallel_config.data_parallel_rank)
        self._table, self._layers = table, layers
        logger.info(
            "eldr: counting %d MoE layers x %d experts, top-%d, in %d KV blocks of %d tokens: %.1f MiB "
            "(table %.1f MiB, ids of a step %.1f MiB) on %s, scatter by %s",
            shape.layers,
            shape.experts,
            shape.top_k,
            shape.blocks,
            shape.block_size,
            shape.bytes / 2**20,
            shape.table_bytes / 2**20,
            shape.ids_bytes / 2**20,
            device,
            scatter.name,
        )

    def _check_memory(self, shape: Shape, device: torch.device) -> None:
        needed = shape.bytes / 2**20
        limit = self._options.memory_limit_mib
        if limit is not None and needed > limit:
            raise Refused(
                f"eldr: the counts need {needed:.1f} MiB, memory_limit_mib allows {limit:g}: count fewer "
                "layers (kv_connector_extra_config.layers), use fewer KV blocks or raise the limit"
            )
        if device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(device)
            if shape.bytes > free:
                raise Refused(
                    f"eldr: the counts need {needed:.1f} MiB and {free / 2**20:.1f} MiB of GPU memory are "
                    "free; lower --gpu-memory-utilization by 0.01"
                )

    def bind_connector_metadata(self, connector_metadata: KVConnectorMetadata) -> None:
        """Called before every step, also before one without a forward pass, and before the pass begins."""
        super().bind_connector_metadata(connector_metadata)
        assert isinstance(connector_metadata, EldrMetadata)
        self._slots = None
        if self._table is not None:
            self._table.begin(connector_metadata.plan)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Nothing is loaded. The step's slots are known here, in every CUDA graph mode."""
        if self._table is None or self._slots is not None:
            return
        by_layer = getattr(forward_context, "slot_mapping", None)
        if isinstance(by_layer, dict):
            self._slots = next((by_layer[n] for n in self._attention_layers if n in by_layer), None)
        if self._slots is None:
            metadata = kwargs.get("attn_metadata") or getattr(forward_context, "attn_metadata", None)
            if isinstance(metadata, dict):
                layer = next((metadata[n] for n in self._attention_layers if n in metadata), None)
                self._slots = getattr(layer, "slot_mapping", None)

    def wait_for_layer_load(self, layer_name: str) -> None:
        pass

    def save_kv_layer(
        self, layer_name: str, kv_layer: torch.Tensor, attn_metadata: Any, **kwargs: Any
    ) -> None:
        """Nothing is saved. Where the attention layers run in Python, the slots are known here too."""
        if self._table is not None and self._slots is None and layer_name in self._attention_layers:
            self._slots = getattr(attn_metadata, "slot_mapping", None)

    def wait_for_save(self) -> None:
        """After the forward pass: the step's tokens go into the table, and requests that end are summed.
        Waits for nothing."""
        if self._table is None or self._layers is None or not self.has_connector_metadata():
            return
        metadata = self._get_connector_metadata()
        assert isinstance(metadata, EldrMetadata)
        plan = metadata.plan
        if plan.tokens > 0:
            if self._slots is None:
                self._fail(
                    "the attention backend gave no slot mapping, so tokens could not be assigned to blocks"
                )
            else:
                self._table.commit(self._slots, plan.tokens)
                self._slots = None
        if plan.ending:
            self._results = self._sum(plan)

    def _sum(self, plan: Plan) -> EldrWorkerMetadata:
        assert self._table is not None
        assert self._layers is not None
        waiting: list[tuple[str, Part]] = []
        wanted: list[tuple[tuple[int, ...], list[int] | None]] = []
        parts: dict[str, list[Part]] = {}
        position = {number: i for i, number in enumerate(self._layers.numbers)}
        for end in plan.ending:
            asked = (
                self._layers.numbers if end.layers is None else tuple(n for n in end.layers if n in position)
            )
            part = Part(
                asked, np.zeros((0, 0), np.int32), self._layers.numbers, self._layers.top_k, self._fault
            )
            if self._fault is not None or not asked:
                parts[end.request] = [part]
                continue
            waiting.append((end.request, part))
            wanted.append((end.blocks, None if end.layers is None else [position[n] for n in asked]))
        if not waiting:
            return EldrWorkerMetadata(parts)
        return EldrWorkerMetadata(parts, (waiting, self._table.totals(wanted)))

    def _fail(self, reason: str) -> None:
        """Rows are wrong from now on: no answer may carry counts again."""
        if self._fault is None:
            self._fault = reason
            logger.error("eldr: no counts any more: %s", reason)

    def build_connector_worker_meta(self) -> KVConnectorWorkerMetadata | None:
        results, self._results = self._results, None
        return results

    # ------------------------------------------------------------ scheduler
    def get_num_new_matched_tokens(
        self, request: Request, num_computed_tokens: int
    ) -> tuple[int | None, bool]:
        assert self._tracker is not None
        self._tracker.looked_up(
            request.request_id, request.num_prompt_tokens, num_computed_tokens, request.kv_transfer_params
        )
        return 0, False

    def update_state_after_alloc(self, request: Request, blocks: Any, num_external_tokens: int) -> None:
        assert self._tracker is not None
        self._tracker.allocated(request.request_id, blocks.get_block_ids()[self._group])

    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> KVConnectorMetadata:
        assert self._tracker is not None
        shares = [
            Scheduled(
                new.req_id,
                new.num_computed_tokens,
                scheduler_output.num_scheduled_tokens[new.req_id],
                self._blocks(new.req_id),
            )
            for new in scheduler_output.scheduled_new_reqs
        ]
        cached = scheduler_output.scheduled_cached_reqs
        shares += [
            Scheduled(req, computed, scheduler_output.num_scheduled_tokens[req], self._blocks(req))
            for req, computed in zip(cached.req_ids, cached.num_computed_tokens, strict=True)
        ]
        copies = [
            (c.src_block_id, c.dst_block_id)
            for c in getattr(scheduler_output, "kv_cache_block_copies", None) or ()
        ]
        return EldrMetadata(self._tracker.step(shares, copies))

    def _blocks(self, request: str) -> list[int]:
        """The request's block table as the scheduler has it now: also right when the table was rewritten."""
        assert self._kv_cache_manager is not None
        blocks: list[int] = self._kv_cache_manager.get_block_ids(request)[self._group]
        return blocks

    def take(self, worker_metadata: KVConnectorWorkerMetadata | None) -> None:
        """Called by the scheduler class before the step's requests finish."""
        if isinstance(worker_metadata, EldrWorkerMetadata) and self._tracker is not None:
            for request, parts in worker_metadata.parts.items():
                for part in parts:
                    self._tracker.take(request, part)

    def update_connector_output(self, connector_output: KVConnectorOutput) -> None:
        """Nothing: take() ran before. Taking parts twice would count pipeline stages twice."""

    def request_finished_all_groups(
        self, request: Request, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        assert self._tracker is not None
        answer = self._tracker.finish(request.request_id, self._stages)
        return False, None if answer is None else {wire.KEY: answer}

    def request_finished(self, request: Request, block_ids: list[int]) -> tuple[bool, dict[str, Any] | None]:
        return self.request_finished_all_groups(request, (block_ids,))


def _device_of(kv_caches: dict[str, Any]) -> torch.device:
    first: Any = next(iter(kv_caches.values()))
    while isinstance(first, list | tuple):
        first = first[0]
    device: torch.device = first.device
    return device

# SPDX-License-Identifier: Apache-2.0
"""Scheduler classes for --scheduler-cls: vLLM's own, but a step's counts reach the connector before the
step's requests finish.

In vLLM `request_finished` runs before `update_connector_output`, so a request with max_tokens=1 would end
without its counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.multi_connector import (
    MultiConnector,
    MultiKVConnectorWorkerMetadata,
)
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler


class HandsOverCounts:
    """Mix-in before a scheduler class of vLLM."""

    connector: Any

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        output = model_runner_output.kv_connector_output
        metadata = output.kv_connector_worker_meta if output is not None else None
        if metadata is not None:
            for connector, its_metadata in _leaves(self.connector, metadata):
                connector.take(its_metadata)
        return super().update_from_output(scheduler_output, model_runner_output)  # type: ignore[misc]


class EldrSyncScheduler(HandsOverCounts, Scheduler):
    """What EldrScheduler makes where asynchronous scheduling is off (--no-async-scheduling, CPUs)."""


class EldrScheduler(HandsOverCounts, AsyncScheduler):
    """The one to name in --scheduler-cls."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        config = kwargs["vllm_config"] if "vllm_config" in kwargs else args[0]
        if cls is EldrScheduler and not config.scheduler_config.async_scheduling:
            return EldrSyncScheduler(*args, **kwargs)
        return super().__new__(cls)


def _leaves(connector: Any, metadata: Any) -> Iterator[tuple[Any, Any]]:
    """Each EldrConnector, at whatever depth of MultiConnectors, with its own metadata."""
    from .connector import EldrConnector

    if isinstance(connector, EldrConnector):
        yield connector, metadata
    elif isinstance(connector, MultiConnector) and isinstance(metadata, MultiKVConnectorWorkerMetadata):
        for child, its_metadata in zip(connector._connectors, metadata.metadata, strict=False):
            if its_metadata is not None:
                yield from _leaves(child, its_metadata)

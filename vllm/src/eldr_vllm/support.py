# SPDX-License-Identifier: Apache-2.0
"""What this package was tested with and what it refuses at start, with the text that a person reads."""

from __future__ import annotations

from typing import Any

from vllm.logger import init_logger

logger = init_logger("vllm.eldr")

TESTED_VERSIONS = ("0.30.0", "0.32.0")
SCHEDULER = "eldr_vllm.scheduler.EldrScheduler"


class Refused(ValueError):
    """The server must not start: it could not return counts. The text names the option to change."""


def warn_of_version(version: str) -> bool:
    """Whether a warning was written."""
    plain = version.split("+")[0]
    if plain in TESTED_VERSIONS:
        return False
    logger.warning(
        "eldr: vLLM %s was not tested with this package (tested: %s). Counts that contradict themselves are "
        "withheld; run the tests in vllm/tests before relying on it.",
        version,
        ", ".join(TESTED_VERSIONS),
    )
    return True


def check_scheduler(vllm_config: Any) -> None:
    """The scheduler finishes a request before the connector hears of the step's output; our scheduler hands
    the counts over first."""
    from .scheduler import HandsOverCounts

    cls = vllm_config.scheduler_config.get_scheduler_cls()
    if not (isinstance(cls, type) and issubclass(cls, HandsOverCounts)):
        raise Refused(
            f"eldr: the scheduler is {getattr(cls, '__name__', cls)}; answers with max_tokens=1 would never "
            f"carry counts. Add --scheduler-cls {SCHEDULER}"
        )


def check_config(vllm_config: Any) -> None:
    """Layouts of tokens that the capture does not follow, and compiled models whose routers Python never
    sees."""
    from vllm.platforms import current_platform

    parallel = vllm_config.parallel_config
    if getattr(parallel, "use_ubatching", False):
        raise Refused(
            "eldr: micro-batches (--enable-dbo, --ubatch-size) split a step's tokens; switch them off on "
            "prefill workers"
        )
    for name in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        size = getattr(parallel, name, 1)
        if size > 1:
            raise Refused(
                f"eldr: {name} is {size}; blocks would hold only a part of a request's tokens. Use 1"
            )
    compiled = int(getattr(vllm_config.compilation_config, "mode", 0) or 0) != 0
    if current_platform.is_cpu() and compiled:
        raise Refused(
            "eldr: on CPUs a compiled model never calls the capture function, so there would be no counts. "
            "Add --enforce-eager"
        )


def attention_group(kv_cache_config: Any) -> int:
    """The KV cache group that rows follow: the first one with full attention in all layers (its blocks live
    as long as the request)."""
    from vllm.v1.kv_cache_interface import is_full_attention_spec

    for number, group in enumerate(kv_cache_config.kv_cache_groups):
        if is_full_attention_spec(group.kv_cache_spec):
            return number
    kinds = [type(group.kv_cache_spec).__name__ for group in kv_cache_config.kv_cache_groups]
    raise Refused(
        f"eldr: the model has no KV cache group with full attention (it has {', '.join(kinds) or 'none'}), "
        f"so no block outlives a window"
    )

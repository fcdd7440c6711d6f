# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of a long test one after the other and says how each went."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

Step = Callable[[], str]
"""Does something, returns what it found; its name in words is what is printed."""


class Skipped(Exception):
    """Why a check cannot be made here."""


def run_steps(needed: Sequence[Step], checks: Sequence[Step]) -> Counter[str]:
    """How many "passed", "FAILED", and "skipped": said so, or not tried because a needed step had failed."""
    results: Counter[str] = Counter()
    for step in (*needed, *checks):
        results[_run(step)] += 1
        if results["FAILED"] and step in needed:
            break
    results["skipped"] += len(needed) + len(checks) - sum(results.values())
    return results


def total(results: Counter[str]) -> str:
    return f"{results['passed']} passed, {results['FAILED']} failed, {results['skipped']} skipped"


def _run(step: Step) -> str:
    begin = time.monotonic()
    try:
        said, result = step(), "passed"
    except Skipped as reason:
        said, result = str(reason), "skipped"
    except Exception:
        said, result = "\n" + traceback.format_exc(), "FAILED"
    name = step.__name__.replace("_", " ")
    print(f"{result}: {name} ({time.monotonic() - begin:.0f} s): {said}", flush=True)
    return result


def wait_for(what: str, condition: Callable[[], Any], seconds: float, every: float = 2) -> float:
    """Waits until `condition` returns something true; the seconds that it took."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise TimeoutError(f"not within {seconds:.0f} s: {what}")
        time.sleep(every)
    return time.monotonic() - begin

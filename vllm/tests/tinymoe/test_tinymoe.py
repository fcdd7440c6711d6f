# SPDX-License-Identifier: Apache-2.0
"""The trained tiny model has the structure of real models; its figures are in docs/guides/real-vllm.md."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.vllm
HERE = Path(__file__).resolve().parent


def test_prompts_foretell_answers_and_domains_share_experts(python: Path) -> None:
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    made = subprocess.run(
        ["nice", "-n", "10", str(python), str(HERE / "tinymoe.py"), "measure"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
        timeout=1800,
    )
    found = json.loads(made.stdout)
    print("\n" + made.stdout)
    assert found["last_loss"] < 0.75 * found["first_loss"]
    assert found["correlation_within_expert_mean"] > 0.5
    # A request's own prompt tells most of its answer, then one of its kind, then one that shares something.
    cosine = found["cosine_prefill_with_decode"]
    assert cosine["own"] > cosine["same_domain_and_language"]
    for shared in ("same_domain", "same_language"):
        assert cosine["same_domain_and_language"] > cosine[shared] > 1.2 * cosine["neither"]
    # The balancing loss did its work: with 4 of 32 chosen, an even share is 0.03, the largest 0.25.
    assert found["busiest_expert_share"] < 0.2
    for batch, union in found["distinct_experts"].items():
        assert union["same_domain_and_language"] < union["same_domain"] < 0.9 * union["mixed"], batch
        assert union["same_domain_and_language"] < union["same_language"] < union["mixed"], batch

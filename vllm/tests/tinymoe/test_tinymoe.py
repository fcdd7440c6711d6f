# SPDX-License-Identifier: Apache-2.0
"""The trained tiny model has the structure that real models have: see docs/guides/real-vllm.md for the
figures."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.vllm
HERE = Path(__file__).resolve().parent


def test_prompts_tell_of_answers_and_domains_share_experts(python: Path) -> None:
    made = subprocess.run([str(HERE / "model"), str(python)], capture_output=True, text=True, check=True)
    folder = Path(made.stdout.strip())
    training = json.loads((folder / "training.json").read_text())
    assert training["last_loss"] < training["first_loss"] / 2
    measures = folder / "measures.json"
    if not measures.exists():
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(HERE.parent)}
        environment.setdefault("OMP_NUM_THREADS", "1")
        subprocess.run(
            ["nice", "-n", "10", str(python), str(HERE / "tinymoe.py"), "measure", str(folder)],
            check=True,
            capture_output=True,
            env=environment,
        )
    found = json.loads(measures.read_text())
    print("\n" + json.dumps({**training, **found}, indent=1))
    # A request's own prefill tells most of its decode, a request of the same domain less, another domain
    # least.
    assert found["cosine_own_decode"] > found["cosine_same_label"] > found["cosine_other_label"]
    assert found["correlation_within_expert_mean"] > 0.3
    assert found["correlation_all"] > found["correlation_within_expert_mean"]
    # The balancing loss did its work: no expert takes all.
    assert found["busiest_expert_share"] < 0.5
    for batch, union in found["union"].items():
        assert union["same_domain_and_language"] < union["same_language"] < union["mixed"], (batch, union)

# SPDX-License-Identifier: Apache-2.0
"""What a person reads who set it up wrongly, and that a server never answers zeros instead."""

from __future__ import annotations

import json
import urllib.error
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from serving import PLUGIN, Refused, Server, eldr_connector, multi_connector, nixl_connector, transfer_config

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize(
    ("name", "kind", "arguments", "eager", "text"),
    [
        (
            "no-scheduler-class",
            "qwen3",
            transfer_config(eldr_connector()),
            True,
            "Add --scheduler-cls eldr_vllm.scheduler.EldrScheduler",
        ),
        ("compiled", "qwen3", (*PLUGIN, *transfer_config(eldr_connector())), False, "Add --enforce-eager"),
        ("dense", "dense", (*PLUGIN, *transfer_config(eldr_connector())), True, "has no MoE layer"),
        (
            "unknown-option",
            "qwen3",
            (*PLUGIN, *transfer_config(eldr_connector(memory=3))),
            True,
            "kv_connector_extra_config.memory is not known",
        ),
        (
            "memory-limit",
            "qwen3",
            (*PLUGIN, *transfer_config(eldr_connector(memory_limit_mib=0.01))),
            True,
            "memory_limit_mib allows 0.01: count fewer layers",
        ),
        (
            "no-such-layer",
            "glm4",
            (*PLUGIN, *transfer_config(eldr_connector(layers=[0]))),
            True,
            "names layer 0, which is no MoE layer; there are [1, 2, 3]",
        ),
    ],
)
def test_the_server_does_not_start_and_says_why(
    name: str,
    kind: str,
    arguments: Sequence[str],
    eager: bool,
    text: str,
    python: Path,
    work: Path,
    model: Callable[[str], Path],
) -> None:
    server = Server(
        python, model(kind), work / f"refused-{name}.log", arguments, eager=eager, max_model_len=512
    )
    with pytest.raises(Refused) as refused:
        server.wait()
    marks = ("Refused: eldr: ", "ValueError: eldr: ")
    said = next(line for line in refused.value.log.splitlines() if any(mark in line for mark in marks))
    print(f"\n{name}: {said[said.index('eldr: ') :]}")
    assert text in refused.value.log


def test_beside_nixl_and_for_odd_requests(python: Path, work: Path, model: Callable[[str], Path]) -> None:
    """One server under MultiConnector, of a version that was not tested: few layers, requests without the
    wish, with a wrong one, chats."""
    eldr = {
        **eldr_connector(layers=[1, 3], memory_limit_mib=8),
        "kv_connector": "UntestedVersionConnector",
        "kv_connector_module_path": "untested_version_connector",
    }
    server = Server(
        python,
        model("qwen3"),
        work / "odd.log",
        [*PLUGIN, *transfer_config(multi_connector(nixl_connector(), eldr))],
        max_model_len=512,
        environment={"PYTHONPATH": str(Path(__file__).resolve().parent)},
    )
    with server:
        prompt = list(range(10, 40))
        params = {"model": "tiny", "prompt": prompt, "max_tokens": 1, "temperature": 0}
        answer = server.post(
            "/v1/completions",
            {**params, "kv_transfer_params": {"do_remote_decode": True, "eldr": {"layers": [3]}}},
        )
        transfer = answer["kv_transfer_params"]
        assert transfer["do_remote_prefill"] is True
        assert transfer["remote_block_ids"]
        assert (transfer["eldr"]["layers"], transfer["eldr"]["counted"]) == ([3], 30)
        assert server.prefill(prompt)["layers"] == [1, 3]
        assert "layer 0 is not counted here; there are 1, 3" in server.prefill(prompt, layers=[0])["error"]
        wishes: list[Any] = [7, {"layers": "all"}, {"layers": [-1]}]
        for wish in wishes:
            said = server.post(
                "/v1/completions", {**params, "kv_transfer_params": {"do_remote_decode": True, "eldr": wish}}
            )["kv_transfer_params"]["eldr"]
            assert set(said) == {"v", "error"}
        plain = server.post("/v1/completions", params)
        assert not (plain.get("kv_transfer_params") or {}).get("eldr")
        chat = server.post(
            "/v1/chat/completions",
            {
                "model": "tiny",
                "messages": [{"role": "user", "content": "def add(a, b)"}],
                "max_completion_tokens": 1,
                "kv_transfer_params": {"do_remote_decode": True},
            },
        )
        said = chat["kv_transfer_params"]["eldr"]
        assert said["counted"] == said["tokens"] == chat["usage"]["prompt_tokens"]
        with pytest.raises((RuntimeError, urllib.error.URLError)):
            server.post("/v1/completions", {**params, "prompt": list(range(600))})
        assert server.prefill(prompt)["counted"] == 30
    log = server.log.read_text()
    assert "counting 2 MoE layers x 16 experts" in log
    assert "vLLM 0.99.0 was not tested with this package (tested: 0.30.0, 0.32.0)" in log
    assert json.dumps(prompt)[1:-1] not in log

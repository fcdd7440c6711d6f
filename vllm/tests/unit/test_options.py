# SPDX-License-Identifier: Apache-2.0
"""kv_connector_extra_config."""

from typing import Any

import pytest

from eldr_vllm.options import Options


def test_defaults() -> None:
    assert Options.parse(None) == Options.parse({}) == Options()


def test_all() -> None:
    options = Options.parse(
        {
            "always": True,
            "layers": [3, 1, 3],
            "memory_limit_mib": 64,
            "scatter": "torch",
            "full_cuda_graphs": True,
        }
    )
    assert options == Options(True, (1, 3), 64, "torch", True)


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"memory": 1}, "memory is not known; there are always"),
        ({"always": "yes"}, "always is 'yes'; it must be true or false"),
        ({"full_cuda_graphs": 1}, "full_cuda_graphs is 1"),
        ({"layers": []}, "layers is"),
        ({"layers": [0, -2]}, "layers is"),
        ({"layers": "all"}, "layers is 'all'"),
        ({"memory_limit_mib": 0}, "memory_limit_mib is 0; it must be a number above 0"),
        ({"memory_limit_mib": "1G"}, "memory_limit_mib is '1G'"),
        ({"scatter": "triton"}, "scatter is 'triton'; it must be one of auto, cuda, torch"),
    ],
)
def test_what_is_wrong_is_named(extra: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Options.parse(extra)

# SPDX-License-Identifier: Apache-2.0
"""Options and shared pieces of the tests that start real servers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from serving import end_with_cleanup_on_sigterm

if TYPE_CHECKING:
    from eldr_vllm.native import NativeScatter
    from eldr_vllm.scatter import Scatter

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Without torch the modules that need only numpy are still tested.
collect_ignore = ["unit/test_schedules.py", "unit/test_table.py"] if find_spec("torch") is None else []


def pytest_configure() -> None:
    end_with_cleanup_on_sigterm()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--vllm-version", default="0.30.0", help="vLLM version of the servers")


@pytest.fixture(scope="session")
def python(request: pytest.FixtureRequest) -> Path:
    """The interpreter of the environment that has vLLM; skips with the reason when there is none."""
    version = request.config.getoption("--vllm-version")
    made = subprocess.run(
        [str(HERE / "setup-vllm.sh"), "--version", version], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(made.stderr.strip().splitlines()[-1])
    return Path(made.stdout.strip())


@pytest.fixture(scope="session")
def work(request: pytest.FixtureRequest) -> Path:
    folder: Path = ROOT / "build" / "vllm-tests" / str(request.config.getoption("--vllm-version"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def model(python: Path) -> Callable[[str], Path]:
    """model(kind): folder of a tiny model, made on first use."""
    return lambda kind: Path(_run(python, "make", kind).strip())


@pytest.fixture(scope="session")
def truth(
    python: Path, work: Path, model: Callable[[str], Path]
) -> Callable[[str, Sequence[Sequence[int]]], Path]:
    """truth(kind, prompts): file with what HF transformers choose in float32."""

    def compute(kind: str, prompts: Sequence[Sequence[int]]) -> Path:
        asked, out = work / f"{kind}-prompts.json", work / f"{kind}-truth.npz"
        asked.write_text(json.dumps([list(prompt) for prompt in prompts]))
        _run(python, "truth", kind, str(model(kind)), str(asked), str(out))
        return out

    return compute


def _run(python: Path, *arguments: str) -> str:
    # A process of its own: the tests' process stays small while servers run.
    ran = subprocess.run(
        ["nice", "-n", "5", str(python), str(HERE / "tinymodels.py"), *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"},
    )
    return ran.stdout


@pytest.fixture(scope="session")
def host_scatter(tmp_path_factory: pytest.TempPathFactory) -> NativeScatter:
    from eldr_vllm.native import NativeScatter

    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile csrc/ with")
    folder = tmp_path_factory.mktemp("csrc")
    subprocess.run(
        [str(HERE.parent / "csrc" / "build.sh"), "host", str(folder)], check=True, capture_output=True
    )
    return NativeScatter(folder / "libeldr_scatter_host.so", "host")


@pytest.fixture(params=["torch", "host"])
def scatter(request: pytest.FixtureRequest) -> Scatter:
    from eldr_vllm.scatter import TorchScatter

    chosen: Scatter = TorchScatter() if request.param == "torch" else request.getfixturevalue("host_scatter")
    return chosen

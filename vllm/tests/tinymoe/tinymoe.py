# SPDX-License-Identifier: Apache-2.0
"""A small Qwen3-MoE whose experts specialise, trained in minutes on a CPU from the project's own prompts.

    tinymoe.py make [--seed S]        trains it if build/ has none yet; prints its folder
    tinymoe.py measure [--seed S]     the same, and prints what the method lives on as JSON

Real models are too large to test with; random ones have no structure to route by. This one has what the
method needs: expert use that differs by domain and language, and a prompt's use that foretells its answer's.
With ELDR_REAL_DATA set, real prompts join the generated ones.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from corpus import ROOT, SCRIPTS, with_real_prompts  # noqa: E402

CACHE = ROOT / "build" / "vllm-tests"
MADE_BY = (
    HERE / "corpus.py",
    HERE / "training.py",
    HERE.parent / "tokenizing.py",
    SCRIPTS / "generate.py",
    SCRIPTS / "real.py",
    *sorted((SCRIPTS / "templates").glob("*.py")),
)


def folder_of(seed: int) -> Path:
    """A change of what the model is made by makes it anew."""
    data = "real" if with_real_prompts() else "generated"
    return CACHE / f"tinymoe-{data}-{seed}-{_digest(*MADE_BY)}"


def _digest(*sources: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:10]


def make(seed: int) -> Path:
    """The model's folder. It gets its name when it is whole, so an interrupted training leaves none; a second
    caller waits for the first."""
    folder = folder_of(seed)
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            from training import train

            with contextlib.redirect_stdout(sys.stderr):
                train(partial, seed)
            partial.rename(folder)
    return folder


def measured(seed: int) -> dict[str, object]:
    """training.json and the measures together; measured once by the same code."""
    folder = make(seed)
    path = folder / f"measures-{_digest(HERE / 'measuring.py')}.json"
    if not path.exists():
        from measuring import measure

        with contextlib.redirect_stdout(sys.stderr):
            text = json.dumps(measure(folder), indent=1)
        path.with_suffix(".partial").write_text(text)
        path.with_suffix(".partial").rename(path)
    result: dict[str, object] = json.loads((folder / "training.json").read_text())
    return {**result, **json.loads(path.read_text())}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("make", "measure"))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
    if given.command == "make":
        print(make(given.seed))
    else:
        print(json.dumps(measured(given.seed), indent=1))


if __name__ == "__main__":
    main()

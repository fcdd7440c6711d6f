#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes real prompts from the folder prompts/ of ELDR_REAL_DATA, as JSON lines with a label.

    ELDR_REAL_DATA=… real.py --count 400 --seed 1 --out prompts.jsonl

Labels: code (HumanEval), math (GSM8K), math-LANGUAGE (MGSM, a language each), chat (MT-bench). The labels share the
count evenly as far as each has prompts. The same count and seed give the same file. Nothing is copied into the project.
"""

import argparse
import json
import lzma
import os
import random
import sys
import tarfile
from pathlib import Path

LANGUAGES = ("de", "fr", "zh", "ru", "ja")


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def load(folder):
    """label -> prompts."""
    pools = {
        "code": [
            row["prompt"] for row in json_lines((folder / "HumanEval.jsonl").read_text(encoding="utf-8"))
        ],
        "math": [
            row["question"]
            for row in json_lines(lzma.decompress((folder / "gsm8k_test.jsonl.xz").read_bytes()).decode())
        ],
        "chat": [
            row["turns"][0]
            for row in json_lines((folder / "mt_bench_question.jsonl").read_text(encoding="utf-8"))
        ],
    }
    with tarfile.open(folder / "mgsm.tar.xz") as archive:
        for member in archive.getmembers():
            language = Path(member.name).stem.removeprefix("mgsm_")
            if member.isfile() and language in LANGUAGES:
                rows = archive.extractfile(member).read().decode("utf-8").splitlines()
                pools[f"math-{language}"] = [row.split("\t")[0] for row in rows if row.strip()]
    return pools


def draw(pools, count, rng):
    """The pools' prompts in equal shares; a pool that runs out leaves its share to the others."""
    for label in sorted(pools):
        rng.shuffle(pools[label])
    prompts = []
    while len(prompts) < count and any(pools.values()):
        for label in sorted(pools):
            if pools[label] and len(prompts) < count:
                prompts.append({"prompt": pools[label].pop(), "label": label})
    rng.shuffle(prompts)
    return prompts


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="-", help="file, or - for standard output")
    options = parser.parse_args(arguments)
    data = os.environ.get("ELDR_REAL_DATA")
    if not data or not (Path(data) / "prompts").is_dir():
        parser.exit(66, f"real.py: ELDR_REAL_DATA={data or ''}: needs a folder that holds prompts/\n")
    prompts = draw(load(Path(data) / "prompts"), options.count, random.Random(options.seed))
    lines = "".join(json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in prompts)
    if options.out == "-":
        sys.stdout.write(lines)
    else:
        Path(options.out).write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The project's prompts with their domain and language."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ROOT / "tests" / "prompts"
MOST_REAL = 10_000
"""More than there are."""
COMMON_WORDS = {
    "en": {"the", "and", "is", "a", "of", "to", "in", "for", "that", "with", "on", "it"},
    "de": {"der", "die", "das", "und", "ist", "ein", "eine", "nicht", "mit", "den", "von", "für"},
    "fr": {"le", "la", "les", "et", "est", "un", "une", "des", "pour", "dans", "que", "du"},
}


def prompts(count: int, seed: int, held_out: bool = False) -> list[dict[str, str]]:
    """`count` generated prompts and, where ELDR_REAL_DATA is set, up to as many real ones, mixed:
    {"prompt", "label", "domain", "language", "pair"}, where "pair" is domain and language in one. Other
    seeds generate other prompts; of the real ones a quarter is had with `held_out`, the others without."""
    rows = _run(SCRIPTS / "generate.py", count, seed)
    if with_real_prompts():
        real = _run(SCRIPTS / "real.py", MOST_REAL, seed)
        rows += [row for row in real if _in_held_out_part(row["prompt"]) == held_out][:count]
    for row in rows:
        # A label is a domain, or domain-language.
        row["domain"], _, language = row["label"].partition("-")
        row["language"] = language or language_of(row["prompt"])
        row["pair"] = pair_of(row["domain"], row["language"])
    random.Random(seed).shuffle(rows)
    return rows


def pair_of(domain: str, language: str) -> str:
    return f"{domain} {language}"


def with_real_prompts() -> bool:
    return bool(os.environ.get("ELDR_REAL_DATA"))


def _in_held_out_part(prompt: str) -> bool:
    return hashlib.sha256(prompt.encode()).digest()[0] % 4 == 0


def _run(script: Path, count: int, seed: int) -> list[dict[str, str]]:
    ran = subprocess.run(
        [sys.executable, str(script), "--count", str(count), "--seed", str(seed)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def language_of(prompt: str) -> str:
    """By the words that hardly a sentence of a language does without: good enough for these prompts."""
    words = prompt.lower().split()
    return max(COMMON_WORDS, key=lambda language: sum(word in COMMON_WORDS[language] for word in words))

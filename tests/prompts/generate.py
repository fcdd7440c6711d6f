#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes prompts of four domains in three languages from the project's own templates, as JSON lines.

    generate.py --count 400 --seed 1 --out prompts.jsonl

Every line is {"prompt": "...", "label": "code" | "math" | "medical" | "legal"}. The same count and seed give the same
file. Another seed gives other prompts. Standard library only.
"""

import argparse
import json
import random
import re
import sys

from templates import LANGUAGES

DOMAINS = ("code", "math", "medical", "legal")
SLOT = re.compile(r"\{(int:(\d+):(\d+)|\w+)\}")
MIN_WORDS = 40


def fill(sentence, slots, chosen, rng):
    """The sentence with its slots filled. A slot keeps its value within a prompt more often than not."""

    def value(match):
        if match.group(2):
            return str(rng.randint(int(match.group(2)), int(match.group(3))))
        name = match.group(1)
        if name not in chosen or rng.random() < 0.2:
            chosen[name] = rng.choice(slots[name])
        return chosen[name]

    return SLOT.sub(value, sentence)


def make_prompt(domain, language, rng):
    parts = LANGUAGES[language][domain]
    details = list(parts["details"])
    rng.shuffle(details)
    wanted = rng.randint(2, 5)
    chosen = {}
    text = [fill(rng.choice(parts["openings"]), parts["slots"], chosen, rng)]
    question = fill(rng.choice(parts["questions"]), parts["slots"], chosen, rng)
    while details and (wanted > 0 or len(" ".join(text + [question]).split()) < MIN_WORDS):
        text.append(fill(details.pop(), parts["slots"], chosen, rng))
        wanted -= 1
    return " ".join(text + [question])


def make_prompts(count, seed):
    """`count` different prompts, the domains and languages in equal shares, in a random order."""
    rng = random.Random(seed)
    seen, prompts = set(), []
    kinds = [(domain, language) for language in LANGUAGES for domain in DOMAINS]
    while len(prompts) < count:
        domain, language = kinds[len(prompts) % len(kinds)]
        prompt = make_prompt(domain, language, rng)
        if prompt not in seen:
            seen.add(prompt)
            prompts.append({"prompt": prompt, "label": domain})
    rng.shuffle(prompts)
    return prompts


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=400, help="number of prompts, 1 to 100000 (default 400)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="-", help="file, or - for standard output")
    options = parser.parse_args(arguments)
    if not 1 <= options.count <= 100_000:
        parser.error(f"--count {options.count}: allowed are 1 to 100000")
    lines = "".join(
        json.dumps(prompt, ensure_ascii=False) + "\n" for prompt in make_prompts(options.count, options.seed)
    )
    if options.out == "-":
        sys.stdout.write(lines)
    else:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write(lines)


if __name__ == "__main__":
    main()

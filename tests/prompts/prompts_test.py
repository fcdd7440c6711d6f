#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of generate.py and real.py."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent


def run(script, *arguments, environment=None):
    return subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **(environment or {})},
    )


def prompts_of(result):
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


class GenerateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prompts = prompts_of(run("generate.py", "--count", "480", "--seed", "1"))

    def test_makes_the_count_in_equal_shares(self):
        labels = collections.Counter(prompt["label"] for prompt in self.prompts)
        self.assertEqual(labels, {"code": 120, "math": 120, "medical": 120, "legal": 120})
        self.assertTrue(all(set(prompt) == {"prompt", "label"} for prompt in self.prompts))

    def test_prompts_differ_and_have_a_useful_length(self):
        texts = [prompt["prompt"] for prompt in self.prompts]
        self.assertEqual(len(set(texts)), len(texts))
        words = [len(text.split()) for text in texts]
        self.assertGreaterEqual(min(words), 40)
        self.assertLessEqual(max(words), 200)
        # Not one sentence with another number: most openings differ even in their first eight words.
        openings = {" ".join(text.split()[:8]) for text in texts}
        self.assertGreater(len(openings), 0.6 * len(texts))

    def test_no_slot_is_left_open(self):
        for prompt in self.prompts:
            self.assertNotRegex(prompt["prompt"], r"\{\w+(:\d+:\d+)?\}")

    def test_three_languages(self):
        counts = {
            word: sum(f" {word} " in prompt["prompt"] for prompt in self.prompts)
            for word in ("the", "und", "une")
        }
        self.assertTrue(all(count >= 100 for count in counts.values()), counts)

    def test_is_deterministic_and_depends_on_the_seed(self):
        self.assertEqual(prompts_of(run("generate.py", "--count", "480", "--seed", "1")), self.prompts)
        other = {p["prompt"] for p in prompts_of(run("generate.py", "--count", "480", "--seed", "2"))}
        self.assertLess(len(other & {p["prompt"] for p in self.prompts}), 5)

    def test_writes_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "p.jsonl"
            self.assertEqual(run("generate.py", "--count", "3", "--out", str(out)).returncode, 0)
            self.assertEqual(len(out.read_text(encoding="utf-8").splitlines()), 3)

    def test_refuses_a_bad_count(self):
        result = run("generate.py", "--count", "0")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--count 0: allowed are 1 to 100000", result.stderr)


class RealTest(unittest.TestCase):
    def test_says_what_it_needs(self):
        result = run("real.py", environment={"ELDR_REAL_DATA": "/nonexistent"})
        self.assertEqual(result.returncode, 66)
        self.assertIn("ELDR_REAL_DATA=/nonexistent", result.stderr)

    @unittest.skipUnless(os.environ.get("ELDR_REAL_DATA"), "ELDR_REAL_DATA is not set")
    def test_takes_labelled_prompts(self):
        prompts = prompts_of(run("real.py", "--count", "400", "--seed", "1"))
        self.assertEqual(len(prompts), 400)
        labels = collections.Counter(prompt["label"] for prompt in prompts)
        self.assertGreaterEqual(len(labels), 4)
        self.assertGreaterEqual(min(labels.values()), 40)
        self.assertEqual(prompts, prompts_of(run("real.py", "--count", "400", "--seed", "1")))
        self.assertNotEqual(prompts, prompts_of(run("real.py", "--count", "400", "--seed", "2")))


if __name__ == "__main__":
    unittest.main()

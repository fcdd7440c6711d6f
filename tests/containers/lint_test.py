#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container files against the tree and against the project's rules for images. Reads them only; build_test.py builds."""

import fnmatch
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import total  # noqa: E402
from containers.containerfile import ROOT, parse  # noqa: E402

FILES = {
    # file: its build context
    ROOT / "containers" / "Containerfile": ROOT,
    ROOT / "vllm" / "Containerfile": ROOT / "vllm",
}
LABELS = {"title", "description", "licenses", "version", "vendor"}


def ignored(context, path):
    """Whether .containerignore leaves a path out. Its last line that fits decides; a line for a folder fits what is in it."""
    out = False
    for line in (context / ".containerignore").read_text().splitlines():
        rule = line.strip().removeprefix("!")
        if not rule or line.startswith("#"):
            continue
        places = [path, *path.parents] if not rule.startswith("**/") else [Path(p) for p in path.parts]
        if any(fnmatch.fnmatch(str(place), rule.removeprefix("**/")) for place in places):
            out = not line.startswith("!")
    return out


class ContainerfileTest(unittest.TestCase):
    def stages(self):
        for file, context in FILES.items():
            for stage in parse(file):
                yield file, context, stage

    def test_every_file_is_looked_at(self):
        folders = [f for f in ROOT.iterdir() if f.is_dir() and not f.name.startswith((".", "build"))]
        found = {file for folder in folders for file in folder.rglob("Containerfile*")}
        self.assertEqual(found, set(FILES))
        self.assertGreaterEqual(sum(1 for _ in self.stages()), 12)

    def test_what_is_copied_exists_and_is_in_the_context(self):
        copied = 0
        for file, context, stage in self.stages():
            for words in stage.all("COPY"):
                if words[0].startswith("--from="):
                    self.assertIn(words[0].removeprefix("--from="), [s.name for s in parse(file)])
                    continue
                for source in words[:-1]:
                    copied += 1
                    self.assertTrue((context / source).exists(), f"{file}: COPY {source}: not there")
                    self.assertFalse(
                        ignored(context, Path(source)), f"{file}: .containerignore leaves {source} out"
                    )
        self.assertGreaterEqual(copied, 12)

    def test_secrets_and_built_things_stay_out_of_the_context(self):
        for path in ("build/bin/eldr-router", ".git/config", ".env", "docs/architecture.md"):
            self.assertTrue(ignored(ROOT, Path(path)), path)
        for path in ("tests/run", "src/eldr_vllm/libeldr_scatter.so", "src/eldr_vllm/__pycache__/wire.pyc"):
            self.assertTrue(ignored(ROOT / "vllm", Path(path)), path)
        self.assertFalse(ignored(ROOT / "vllm", Path("src/eldr_vllm/wire.py")))

    def test_bases_are_pinned(self):
        for file, _, stage in self.stages():
            if stage.base == "scratch" or stage.base in [s.name for s in parse(file)]:
                continue
            self.assertRegex(
                stage.base, r"(:v?\d+(\.\d+)+[\w.-]*|@sha256:[0-9a-f]{64})$", f"{file}: FROM {stage.base}"
            )

    def images(self):
        """What is built for use: of vllm/Containerfile its last stage, of the other each stage with an entry point."""
        for file in FILES:
            stages = parse(file)
            programs = [s for s in stages if s.all("ENTRYPOINT")]
            for image in programs or stages[-1:]:
                yield image, [s for s in stages if s is image or s.name == image.base]

    def test_images_run_as_a_user_that_is_not_root(self):
        count = 0
        for image, parts in self.images():
            count += 1
            users = [words[0] for part in parts for words in part.all("USER")]
            self.assertEqual(users[-1], "65532:65532", image.name)
        self.assertEqual(count, 5)

    def test_images_are_labelled(self):
        for image, parts in self.images():
            text = " ".join(" ".join(words) for part in parts for words in part.all("LABEL"))
            found = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", text))
            self.assertEqual(found, LABELS, image.name)
            version = re.search(r"image\.version=(\S+)", text).group(1)
            self.assertIn(f"VERSION {version} ", (ROOT / "CMakeLists.txt").read_text())
            self.assertIn(f'version = "{version}"', (ROOT / "vllm" / "pyproject.toml").read_text())

    def test_packages_are_those_of_the_set_up(self):
        setup = (
            re.search(r"^packages=\((.*?)^\)", (ROOT / "scripts" / "setup").read_text(), re.M | re.S)
            .group(1)
            .split()
        )
        (tools,) = [s for s in parse(ROOT / "containers" / "Containerfile") if s.name == "tools"]
        (words,) = tools.all("RUN")
        start = words.index("--no-install-recommends") + 1
        packages = words[start : words.index("&&", start)]
        self.assertGreater(len(packages), 20)
        self.assertEqual(set(packages) - set(setup), set())


if __name__ == "__main__":
    sys.exit(total.run())

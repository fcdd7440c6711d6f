# SPDX-License-Identifier: Apache-2.0
"""Reads a container file into its stages: enough of the format for the files of this project."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Stage:
    """What stands between one FROM and the next. `base` has its arguments filled in."""

    def __init__(self, base, name):
        self.base, self.name = base, name
        self.instructions = []

    def all(self, instruction):
        """The words of each use of an instruction."""
        return [words for found, words in self.instructions if found == instruction]


def logical_lines(text):
    """Lines without comments, those that end with a backslash joined with the next."""
    joined = ""
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            continue
        joined += line.rstrip()
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        if joined.strip():
            yield joined.strip()
        joined = ""


def parse(file):
    stages, arguments = [], {}
    for line in logical_lines(file.read_text()):
        instruction, *words = line.split()
        if instruction == "FROM":
            base = words[0]
            for name, value in arguments.items():
                base = base.replace("${" + name + "}", value)
            stages.append(Stage(base, words[2] if len(words) > 2 else ""))
        elif not stages:
            assert instruction == "ARG", f"{file}: {instruction} before the first FROM"
            name, _, value = words[0].partition("=")
            arguments[name] = value
        else:
            stages[-1].instructions.append((instruction, words))
    return stages

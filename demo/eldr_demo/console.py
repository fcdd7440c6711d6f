# SPDX-License-Identifier: Apache-2.0
"""What the demonstration prints: chapters, progress that changes, tables, and claims with their evidence."""

import sys
import time

BOLD, GREEN, RED, DIM, RESET = (
    ("\033[1m", "\033[32m", "\033[31m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("",) * 5
)


class Console:
    def __init__(self):
        self.started = time.monotonic()
        self.passed = []
        self.failed = []
        self._progress = ""

    def clock(self):
        seconds = int(time.monotonic() - self.started)
        return f"{seconds // 60}:{seconds % 60:02d}"

    def chapter(self, title):
        self._progress = ""
        print(f"\n{BOLD}[{self.clock()}] {title}{RESET}", flush=True)

    def say(self, text):
        print(f"  {text}", flush=True)

    def progress(self, text):
        """Prints `text` when it differs from what was printed last."""
        if text != self._progress:
            self._progress = text
            print(f"  {DIM}[{self.clock()}]{RESET} {text}", flush=True)

    def claim(self, text, holds, evidence=""):
        """Records whether a claim held; a failed one fails the whole run at its end."""
        (self.passed if holds else self.failed).append(text)
        mark = f"{GREEN}ok{RESET}  " if holds else f"{RED}FAIL{RESET}"
        print(f"  {mark} {text}{f'  ({evidence})' if evidence else ''}", flush=True)
        return holds

    def table(self, header, rows):
        cells = [[str(cell) for cell in row] for row in [header, *rows]]
        widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
        for row in cells:
            print(
                "    "
                + "  ".join(
                    cell.rjust(width) if i else cell.ljust(width)
                    for i, (cell, width) in enumerate(zip(row, widths))
                )
            )
        sys.stdout.flush()

    def total(self):
        """Ends with the line that test runners read. Returns the exit code."""
        for text in self.failed:
            print(f"{RED}FAILED{RESET} {text}")
        print(f"{len(self.passed)} passed, {len(self.failed)} failed, 0 skipped", flush=True)
        return 1 if self.failed or not self.passed else 0

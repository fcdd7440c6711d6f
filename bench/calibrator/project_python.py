# SPDX-License-Identifier: Apache-2.0
"""The Python of build/venv, which has numpy and scipy; scripts/setup makes it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VENV = Path(__file__).resolve().parents[2] / "build/venv"


def use() -> None:
    """Starts the program again with it, unless it runs already or is not there. Call before importing numpy."""
    python = VENV / "bin/python3"
    if python.exists() and Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(python, [str(python), *sys.argv])

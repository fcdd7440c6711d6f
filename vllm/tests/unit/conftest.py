# SPDX-License-Identifier: Apache-2.0
"""Lets the tests run from a checkout without installing the package."""

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in (HERE, HERE.parent, HERE.parent.parent / "src"):
    sys.path.insert(0, str(folder))

# Without torch the modules that need only numpy are still tested.
collect_ignore = ["test_schedules.py", "test_table.py"] if find_spec("torch") is None else []

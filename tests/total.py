# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest cases of the program's own file and ends with the line that scripts/test reads."""

import unittest


def run():
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    failed = {test.id() for test, _ in [*result.failures, *result.errors]}
    # A failed sub-test counts with its test, a class that was skipped as one.
    failed = len({name.split(" ")[0] for name in failed})
    skipped = len(result.skipped)
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    passed = result.testsRun - failed - sum(1 for t, _ in result.skipped if hasattr(t, "_testMethodName"))
    print(f"{max(passed, 0)} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0

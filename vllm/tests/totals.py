# SPDX-License-Identifier: Apache-2.0
"""totals.py JUNIT.xml: passed, failed and skipped tests as three numbers."""

import sys
import xml.etree.ElementTree as ElementTree

suites = list(ElementTree.parse(sys.argv[1]).iter("testsuite"))
total, failed, errors, skipped = (
    sum(int(suite.get(key, "0")) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
)
print(total - failed - errors - skipped, failed + errors, skipped)

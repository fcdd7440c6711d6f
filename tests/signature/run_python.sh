#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_python.sh PYTHON SCRIPT ARGUMENTS...: runs the script, or says that there is no such interpreter and exits 77 (skipped).
set -eu
if ! command -v "$1" >/dev/null 2>&1; then
  echo "SKIPPED: no Python at $1; set ELDR_TEST_PYTHON or run scripts/setup"
  echo "0 passed, 0 failed, 1 skipped"
  exit 77
fi
exec "$@"

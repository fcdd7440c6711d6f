#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment with nvcc (no GPU is needed to compile): build/nvcc-venv. Prints its folder; exits 69 when it cannot.
set -euo pipefail
root=$(realpath "$(dirname "$(realpath "$0")")/../..")
venv=$root/build/nvcc-venv
packages=("nvidia-cuda-nvcc>=13,<14" "nvidia-nvvm>=13,<14" "nvidia-cuda-crt>=13,<14" "nvidia-cuda-runtime>=13,<14" "nvidia-cuda-cccl>=13,<14")
if [ "$(cat "$venv/.complete" 2>/dev/null)" != "${packages[*]}" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" -q --disable-pip-version-check install "${packages[@]}" >&2 || { echo "setup-nvcc: cannot install nvcc" >&2; exit 69; }
  echo "${packages[*]}" >"$venv/.complete"
fi
echo "$venv"

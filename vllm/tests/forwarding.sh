# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# To be sourced.

# forwarding COMMAND…: like the command itself, but a signal that ends this script ends all of the command's processes first. Bash alone
# would wait for the command, and leave its children running.
forwarding() {
  local child='' code=0 ended=''
  # Before the child: a signal that comes while it starts must find the trap.
  trap 'ended=1; [ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null || true' INT TERM HUP
  set -m # a process group of its own
  "$@" &
  child=$!
  set +m
  [ -z "$ended" ] || kill -TERM -- "-$child" 2>/dev/null || true
  while :; do
    code=0
    wait "$child" || code=$?
    kill -0 "$child" 2>/dev/null || break
  done
  trap - INT TERM HUP
  [ -z "$ended" ] || exit 143
  return "$code"
}

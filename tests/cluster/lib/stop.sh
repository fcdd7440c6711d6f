# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Stops all that a cluster's folder ($state) tells of, however far its start came. Can be repeated.

stop_cluster() {
  local record name pid slot status=0
  local -a pids=()
  [[ -d $state ]] || return 0
  # The node's process 1 takes everything in the node with it, containers too.
  if pid=$(pid_of init) || { pid=$(pid_of node) && pid=$(child_of "$pid"); }; then
    kill_all 0 "$pid" || status=1
  fi
  for record in "$state"/run/*.pid; do
    name=$(basename "$record" .pid)
    [[ $name != up ]] && pid=$(pid_of "$name") && pids+=("$pid")
  done
  for pid in $(marked_processes); do pids+=("$pid"); done
  kill_all 2 ${pids[@]+"${pids[@]}"} || status=1

  for slot in $(slots_of "$state"); do free_slot "$slot" || status=1; done
  unmount_below "$state"
  ((status == 0)) || return "$status"
  rm -rf "$state/run" "$state/slot"
}

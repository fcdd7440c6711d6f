# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Stops all that a cluster's folder ($state) tells of, however far its start came. Can be repeated.

unmount_below() { # FOLDER
  local mount
  awk -v folder="$1/" 'index($2 "/", folder) == 1 {print $2}' /proc/self/mounts | sort -r | while read -r mount; do
    umount --lazy "$(printf '%b' "$mount")" || true
  done
}

stop_cluster() {
  local record name pid status=0
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

  if [[ -s $state/slot ]]; then
    use_slot "$(<"$state/slot")"
    if [[ $(cat "$run_dir/state" 2>/dev/null) == "$state" ]]; then
      ip link del "$link" 2>/dev/null || true
      remove_cgroups
      unmount_below "$run_dir"
      rm -rf "$run_dir"
    fi
  fi
  unmount_below "$state"
  ((status == 0)) || return "$status"
  rm -rf "$state/run" "$state/slot"
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The processes of one cluster: started with a record of their pid and start time, watched, and stopped by that record alone, so that a
# pid which the kernel has given to somebody else is never killed. $state is the cluster's folder.

# Reads a file of /proc into the variable named by $1; fails when the process is gone. (With set -e, $(<file) would end the script.)
read_stat() { # VARIABLE FILE
  local content=
  { IFS= read -r -d '' content <"$2"; } 2>/dev/null || true
  [[ -n $content ]] && printf -v "$1" %s "$content"
}

# The start time of a process that lives (not a zombie), in clock ticks since boot.
start_time() { # PID
  local stat
  read_stat stat "/proc/$1/stat" || return 1
  stat=${stat##*) } # from field 3 on; the command's name before it may hold anything
  local -a fields
  read -ra fields <<<"$stat"
  [[ ${fields[0]} != Z && ${fields[0]} != X ]] && echo "${fields[19]}"
}

record() { # NAME PID
  local time
  time=$(start_time "$2") || return 0 # gone already; the next check says so
  echo "$2 $time" >"$state/run/$1.pid"
}
# Prints the pid of a recorded process; fails when it is gone.
pid_of() { # NAME
  local pid time
  [[ -s $state/run/$1.pid ]] && read -r pid time <"$state/run/$1.pid" && [[ $(start_time "$pid") == "$time" ]] && echo "$pid"
}

# Starts a component in the background. The variable in its environment marks it as this cluster's even when its record got lost.
components=()
start() { # NAME COMMAND…
  local name=$1
  shift
  : >"$state/run/$name.pid"
  ELDR_TEST_CLUSTER=$state setsid "$@" >"$state/log/$name.log" 2>&1 </dev/null 9>&- &
  record "$name" $!
  components+=("$name")
}

# Prints the pid of the first child of a process.
child_of() { # PID
  local stat fields
  for stat in /proc/[0-9]*/stat; do
    read_stat stat "$stat" || continue
    read -ra fields <<<"${stat##*) }"
    [[ ${fields[1]} == "$1" ]] && echo "${stat%% *}" && return 0
  done
  return 1
}

# Ends the script with the last lines of the log of the component that is to blame. The script's exit trap stops the rest.
blame() { # NAME WHAT-HAPPENED
  complain "$1: $2"
  if [[ -s $state/log/$1.log ]]; then
    complain "the last lines of its log, $state/log/$1.log:"
    tail -n 20 "$state/log/$1.log" | cut -c1-400 | sed 's/^/    /' >&2
  fi
  exit "$EX_SOFTWARE"
}

# Waits until a command succeeds. NAME is the component to blame when that takes too long.
wait_for() { # NAME SECONDS WHAT COMMAND…
  local blamed=$1 limit=$2 what=$3 name deadline=$((SECONDS + $2))
  shift 3
  until "$@" >/dev/null 2>&1; do
    for name in "${components[@]}"; do
      pid_of "$name" >/dev/null || blame "$name" "ended unexpectedly while I waited for $what"
    done
    ((SECONDS < deadline)) || blame "$blamed" "no $what after $limit s"
    sleep 0.1
  done
}

gone() { ! start_time "$1" >/dev/null; }
# Kills processes, politely first, and waits until they are gone.
kill_all() { # SECONDS-OF-POLITENESS PID…
  local polite=$1 pid tick left
  shift
  (($#)) || return 0
  ((polite == 0)) || kill -TERM "$@" 2>/dev/null || true
  for ((tick = 0; tick < 300; ++tick)); do
    ((tick == polite * 10)) && { kill -KILL "$@" 2>/dev/null || true; }
    left=
    for pid in "$@"; do gone "$pid" || left=1; done
    [[ -n $left ]] || return 0
    sleep 0.1
  done
  complain "these processes do not end: $*"
  return 1
}

# The pids of all processes that carry this cluster's mark, but for those in the cluster's own process namespace, which end with it.
marked_processes() {
  local environ
  for environ in /proc/[0-9]*/environ; do
    if grep -qzxF "ELDR_TEST_CLUSTER=$state" "$environ" 2>/dev/null; then
      environ=${environ#/proc/}
      start_time "${environ%/environ}" >/dev/null && echo "${environ%/environ}"
    fi
  done
  return 0
}

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# What every script of this folder needs: messages, help, where things are.

cluster_dir=$(dirname "$(dirname "$(realpath "${BASH_SOURCE[0]}")")")
repository=$(dirname "$(dirname "$cluster_dir")")
EX_USAGE=64
EX_UNAVAILABLE=69
EX_SOFTWARE=70
readonly cluster_dir repository EX_USAGE EX_UNAVAILABLE EX_SOFTWARE

# The folder of the built binaries when none is named.
default_bin() { realpath -m "${ELDR_CLUSTER_CACHE:-$repository/build/cluster/bin}"; }

say() { printf 'cluster: %s\n' "$*"; }
complain() { printf 'cluster: %s\n' "$*" >&2; }
die() { # STATUS MESSAGE
  complain "$2"
  exit "$1"
}

# A message with the seconds since the script started.
progress() {
  local now=${EPOCHREALTIME/[.,]/}
  printf 'cluster: %5.1f s  %s\n' "$(((now - started_us) / 100000))e-1" "$*"
}
started_us=${EPOCHREALTIME/[.,]/}

# Prints the comment at the head of a script, which is its help.
help_of() { sed -n '/^# SPDX/d; /^#!/d; /^# \{0,1\}/!q; s/^# \{0,1\}//p' "$1"; }
usage_error() { # SCRIPT MESSAGE
  complain "$2"
  help_of "$1" >&2
  exit "$EX_USAGE"
}

# Fills the array named by $1 with the Go command to use; fails with one line when there is none that is new enough.
find_go() {
  local -n found=$1
  local candidate version minor
  for candidate in "${ELDR_GO:-}" "$(command -v go || true)" /usr/local/go/bin/go "$repository/build/tools/bin/go"; do
    [[ -n $candidate && -x $candidate ]] || continue
    version=$("$candidate" env GOVERSION 2>/dev/null) || continue
    minor=${version#go1.}
    minor=${minor%%[!0-9]*}
    [[ $version == go1.* && ${minor:-0} -ge 24 ]] && found=$candidate && return 0
  done
  return 1
}

# One hash over everything that the binaries are built from.
inputs_hash() {
  (cd "$cluster_dir" && sha256sum build image kube/* dns/* pause/*) | sha256sum | cut -d' ' -f1
}
is_built() { # BIN
  [[ -x $1/kube && -x $1/coredns && -f $1/pause.tar && -x $1/kubectl && -f $1/.inputs && $(<"$1/.inputs") == "$(inputs_hash)" ]]
}

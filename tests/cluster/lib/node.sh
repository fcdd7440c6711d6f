# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154,SC2034
# The node of a full cluster: its own network, mount and process namespaces, so that clusters do not meet each other or the machine in
# ports, firewall rules, mounts or pod folders, and so that all of it ends when the node's process 1 ends. A veth pair joins it to the machine.
#
# A cluster holds a slot, a number from which its names and addresses follow. The folder of the slot is made by mkdir, which only one wins.

slots_dir=/run/eldr-cluster
slot_count=100

use_slot() { # SLOT
  slot=$1
  run_dir=$slots_dir/$slot
  link=eldr$slot
  host_ip=10.212.$slot.1
  node_ip=10.212.$slot.2
  pod_cidr=10.213.$slot.0/24
  dns_ip=10.213.$slot.1
  service_cidr=10.214.$slot.0/24
  service_ip=10.214.$slot.1
  cgroup=eldr-$slot
  containerd_socket=$run_dir/containerd.sock
}

routes_overlap() {
  local cidr
  for cidr in "10.212.$1.0/24" "10.213.$1.0/24" "10.214.$1.0/24"; do
    [[ -z $(ip -4 route show root "$cidr") ]] || return 0
  done
  return 1
}

# The slots whose owner is a certain folder.
slots_of() { # STATE
  local claim
  for claim in "$slots_dir"/*/state; do
    [[ ! -f $claim || $(cat "$claim") != "$1" ]] || basename "$(dirname "$claim")"
  done
}

unmount_below() { # FOLDER
  local mount
  awk -v folder="$1/" 'index($2 "/", folder) == 1 {print $2}' /proc/self/mounts | sort -r | while read -r mount; do
    umount --lazy "$(printf '%b' "$mount")" || true
  done
}

# Ends what runs in a slot, and gives the slot back.
free_slot() { # SLOT
  local -a pids
  local owner
  use_slot "$1"
  owner=$(cat "$run_dir/state" 2>/dev/null || true)
  if [[ -n $owner ]]; then
    mapfile -t pids < <(state=$owner marked_processes)
    kill_all 0 ${pids[@]+"${pids[@]}"} || return 1
  fi
  ip link del "$link" 2>/dev/null || true
  remove_cgroups
  unmount_below "$run_dir"
  rm -rf "$run_dir"
}

# A slot is stale when its owner's folder was removed without "down", or when its claim was cut short.
is_stale() { # SLOT
  local owner
  owner=$(cat "$slots_dir/$1/state" 2>/dev/null || true)
  if [[ -n $owner ]]; then [[ ! -e $owner ]]; else [[ -n $(find "$slots_dir/$1" -maxdepth 0 -mmin +1 2>/dev/null) ]]; fi
}

take_slot() {
  local candidate
  mkdir -p "$slots_dir"
  for ((candidate = 0; candidate < slot_count; ++candidate)); do
    if [[ -d $slots_dir/$candidate ]]; then
      is_stale "$candidate" || continue
      free_slot "$candidate" || continue
    fi
    routes_overlap "$candidate" && continue
    mkdir "$slots_dir/$candidate" 2>/dev/null || continue
    echo "$state" >"$slots_dir/$candidate/state"
    echo "$candidate" >"$state/slot"
    use_slot "$candidate"
    return 0
  done
  die "$EX_UNAVAILABLE" "no free slot for another cluster: $slots_dir has $slot_count, or routes of this machine cover 10.212.0.0 to 10.214.255.255"
}

# The words that run a command in the node's namespaces.
in_node=()

make_node() {
  start node unshare --net --mount --pid --fork --kill-child --mount-proc --propagation slave "$bin/pause"
  local deadline=$((SECONDS + 10)) parent node_pid
  parent=$(pid_of node) || blame node "ended unexpectedly"
  # Namespaces are there once the child runs pause.
  until node_pid=$(child_of "$parent") && [[ $(readlink "/proc/$node_pid/exe") == "$(realpath "$bin/pause")" ]]; do
    ((SECONDS < deadline)) || blame node "did not start in 10 s"
    sleep 0.02
  done
  record init "$node_pid"
  in_node=(nsenter --target "$node_pid" --net --mount --pid --)

  ip link add "$link" type veth peer name eth0 netns "$node_pid"
  ip addr add "$host_ip/30" dev "$link"
  ip link set "$link" up
  # Folders of the machine that a node writes to by fixed names get a folder of the cluster put over them, for the node alone.
  local -a mounts=("$state/kubelet" /var/lib/kubelet "$state/cni-cache" /var/lib/cni "$state/container-logs" /var/log/containers)
  mkdir -p "${mounts[@]}" /run/containerd /run/netns
  # shellcheck disable=SC2016  # expanded there
  "${in_node[@]}" bash -euc '
    mount -t tmpfs -o mode=755 tmpfs /run/containerd
    mount -t tmpfs -o mode=755 tmpfs /run/netns
    while (($# > 3)); do
      mount --bind "$1" "$2"
      shift 2
    done
    mount --make-rshared /
    ip link set lo up
    ip addr add "$1/30" dev eth0
    ip link set eth0 up
    echo 1 >/proc/sys/net/ipv4/ip_forward
    ip link add pods type bridge
    ip addr add "$2/24" dev pods
    ip link set pods up
    # Services have no device, but only what has a route reaches the rules that send it to a pod, or refuse it.
    ip route add "$3" dev pods src "$1"
    # Each connection to a service without pods is refused, not only one in a second.
    echo 0 >/proc/sys/net/ipv4/icmp_ratelimit
    echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
  ' _ "${mounts[@]}" "$node_ip" "$dns_ip" "$service_cidr" >"$state/log/node.log" 2>&1 || blame node "its network or mounts cannot be set up"
  ip route add "$pod_cidr" via "$node_ip" dev "$link"
  ip route add "$service_cidr" via "$node_ip" dev "$link"
}

# The folders of the kernel's cgroup hierarchies (version 1: one for each controller; version 2: one).
cgroup_roots() { awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/self/mounts; }
make_cgroups() {
  local root
  share_controllers || true
  for root in $(cgroup_roots); do mkdir -p "$root/$cgroup"; done
}
# cgroup version 2 alone: groups below the root have only the controllers that the root shares.
share_controllers() {
  local root=/sys/fs/cgroup controller shared
  [[ -f $root/cgroup.subtree_control ]] || return 0
  for controller in cpu cpuset memory pids; do
    read -r shared <"$root/cgroup.subtree_control" || true
    [[ " $shared " == *" $controller "* ]] || echo "+$controller" 2>/dev/null >"$root/cgroup.subtree_control" || return 1
  done
}
remove_cgroups() {
  local root try
  for root in $(cgroup_roots); do
    for ((try = 0; try < 50; ++try)); do
      [[ -d $root/$cgroup ]] || break
      find "$root/$cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null || true
      [[ ! -d $root/$cgroup ]] || sleep 0.1
    done
  done
}

cni_plugins() {
  local folder
  for folder in "${ELDR_CNI_BIN:-}" /usr/lib/cni /opt/cni/bin; do
    [[ -n $folder && -x $folder/bridge && -x $folder/host-local && -x $folder/portmap && -x $folder/loopback ]] && echo "$folder" && return 0
  done
  return 1
}

# overlayfs cannot lie on every file system (on itself, for one); copies can.
snapshotter() {
  local try=$state/overlay-try
  mkdir -p "$try"/{lower,upper,work,merged}
  if "${in_node[@]}" mount -t overlay overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" "$try/merged" 2>/dev/null; then
    "${in_node[@]}" umount "$try/merged"
    echo overlayfs
  else
    echo native
  fi
  rm -rf "$try"
}

start_containerd() {
  cat >"$state/containerd.toml" <<TOML
version = 2
root = "$state/containerd"
state = "$run_dir/containerd"
[grpc]
  address = "$containerd_socket"
[plugins."io.containerd.internal.v1.opt"]
  path = "$state/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/eldr/pause:1"
  # Machines without CAP_SYS_RESOURCE refuse a lower score.
  restrict_oom_score_adj = true
  # As from containerd 2 on: pods need no capability for a port below 1024, or for ping.
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$(cni_plugins)"
    conf_dir = "$state/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$(snapshotter)"
TOML
  mkdir -p "$state/cni"
  cat >"$state/cni/10-pods.conflist" <<JSON
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "pods", "isGateway": true, "ipMasq": true, "hairpinMode": true, "ipam": {
    "type": "host-local", "dataDir": "/var/lib/cni/networks", "ranges": [[{"subnet": "$pod_cidr"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  start containerd "${in_node[@]}" containerd --config "$state/containerd.toml"
}
containerd_answers() { ctr --address "$containerd_socket" --connect-timeout 2s version; }

start_kubelet() {
  cat >"$state/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {x509: {clientCAFile: "$state/pki/ca.crt"}, webhook: {enabled: true}, anonymous: {enabled: false}}
authorization: {mode: Webhook}
tlsCertFile: "$state/pki/kubelet.crt"
tlsPrivateKeyFile: "$state/pki/kubelet.key"
containerRuntimeEndpoint: unix://$containerd_socket
cgroupDriver: cgroupfs
cgroupRoot: /$cgroup
failSwapOn: false
clusterDNS: ["$dns_ip"]
clusterDomain: cluster.local
resolvConf: ""
podLogsDir: $state/pod-logs
volumePluginDir: /var/lib/kubelet/volume-plugins
nodeStatusUpdateFrequency: 5s
# Images are loaded, not pulled: one that is removed would be lost.
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 24h
evictionHard: {nodefs.available: "1%", imagefs.available: "1%", memory.available: 100Mi}
YAML
  mkdir -p "$state/pod-logs"
  start kubelet "${in_node[@]}" "$bin/kubelet" --kubeconfig "$state/kubelet.kubeconfig" --config "$state/kubelet.yaml" --root-dir /var/lib/kubelet \
    --hostname-override local --node-ip "$node_ip"
}

start_scheduler() {
  start kube-scheduler "${in_node[@]}" "$bin/kube-scheduler" --kubeconfig "$state/scheduler.kubeconfig" --bind-address 127.0.0.1 \
    --cert-dir "$state/pki" --leader-elect=false --kube-api-qps 100 --kube-api-burst 200
}

start_proxy() {
  # The limits of connection tracking belong to the whole machine; they are left alone.
  start kube-proxy "${in_node[@]}" "$bin/kube-proxy" --kubeconfig "$state/proxy.kubeconfig" --hostname-override local --proxy-mode iptables \
    --cluster-cidr "$pod_cidr" --conntrack-max-per-core 0 --metrics-bind-address 127.0.0.1:10249 --healthz-bind-address 127.0.0.1:10256
}

start_dns() {
  cat >"$state/Corefile" <<CADDY
.:53 {
  bind $dns_ip
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $state/admin.kubeconfig
    pods insecure
  }
  cache 5
}
CADDY
  start coredns "${in_node[@]}" "$bin/coredns" -conf "$state/Corefile"
}

make_node_keys() { # API-SERVER-URL
  make_certificate scheduler system:kube-scheduler system:kube-scheduler
  make_certificate kubelet system:node:local system:nodes "DNS:local,IP:$node_ip"
  make_certificate proxy system:kube-proxy system:node-proxier
  local name
  for name in scheduler kubelet proxy; do make_kubeconfig "$name" "$1"; done
}

node_is_ready() { [[ $(kubectl_admin get node local -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]]; }
# Both capacity and allocatable: the kubelet keeps a capacity that it does not know, and derives the other from it some seconds later.
offer_gpus() { # COUNT
  kubectl_admin patch node local --subresource status --type json --patch \
    "[{\"op\": \"add\", \"path\": \"/status/capacity/nvidia.com~1gpu\", \"value\": \"$1\"},
      {\"op\": \"add\", \"path\": \"/status/allocatable/nvidia.com~1gpu\", \"value\": \"$1\"}]" &&
    kubectl_admin label --overwrite node local nvidia.com/gpu.present=true
}

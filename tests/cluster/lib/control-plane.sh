# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# etcd, the API server and the controllers. The words of "in_node" before a command run it in the node's namespaces; with --api-only
# there are none, and it runs plainly.
#
# Set by the caller: $state, $bin; $api_host and $api_port (where the API server is reached), $service_cidr, $service_ip (its first address).

# Prints COUNT TCP ports of 127.0.0.1 that nobody listens on, below the range from which outgoing connections take theirs.
free_ports() { # COUNT
  local -A taken=()
  local port
  while ((${#taken[@]} < $1)); do
    port=$((20000 + SRANDOM % 12000))
    [[ -n ${taken[$port]:-} ]] && continue
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
    taken[$port]=1
  done
  echo "${!taken[@]}"
}

kubectl_admin() { "$bin/kubectl" --kubeconfig "$state/admin.kubeconfig" --request-timeout 10s "$@"; }
api_is_ready() { kubectl_admin --request-timeout 2s get --raw /readyz; }
default_account_exists() { kubectl_admin get serviceaccount default --namespace default; }

make_control_plane_keys() { # API-SERVER-URL
  local names=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,DNS:localhost
  local addresses=IP:127.0.0.1,IP:$service_ip
  [[ $api_host == 127.0.0.1 ]] || addresses+=,IP:$api_host
  make_ca
  make_certificate apiserver kube-apiserver kubernetes "$names,$addresses"
  make_certificate admin kubernetes-admin system:masters
  make_certificate controller-manager system:kube-controller-manager system:kube-controller-manager
  make_kubeconfig admin "$1"
  make_kubeconfig controller-manager "$1"
}

start_etcd() { # CLIENT-PORT PEER-PORT
  local client=http://127.0.0.1:$1 peer=http://127.0.0.1:$2
  # A short election time: there is nobody else to elect, and etcd waits for it at start.
  start etcd "${in_node[@]}" "$bin/etcd" --name local --data-dir "$state/etcd" --unsafe-no-fsync --log-level warn \
    --heartbeat-interval 50 --election-timeout 500 --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "local=$peer"
}

start_api_server() { # ETCD-CLIENT-PORT FLAGS…
  local etcd=http://127.0.0.1:$1 pki=$state/pki
  shift
  start kube-apiserver "${in_node[@]}" "$bin/kube-apiserver" --etcd-servers "$etcd" --secure-port "$api_port" --advertise-address "$api_host" \
    --cert-dir "$pki" --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --service-cluster-ip-range "$service_cidr" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local --allow-privileged --profiling=false "$@"
}

start_controller_manager() { # SECURE-PORT
  local pki=$state/pki
  start kube-controller-manager "${in_node[@]}" "$bin/kube-controller-manager" --kubeconfig "$state/controller-manager.kubeconfig" \
    --secure-port "$1" --bind-address 127.0.0.1 --cert-dir "$pki" --leader-elect=false --use-service-account-credentials \
    --service-account-private-key-file "$pki/sa.key" --root-ca-file "$pki/ca.crt" \
    --cluster-signing-cert-file "$pki/ca.crt" --cluster-signing-key-file "$pki/ca.key" --kube-api-qps 100 --kube-api-burst 200
}

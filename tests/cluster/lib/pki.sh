# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# Keys, certificates and kubeconfigs, by openssl. They are valid for 30 days; $state/pki is its owner's alone.

new_key() { openssl ecparam -genkey -name prime256v1 -noout -out "$1"; }

make_ca() {
  new_key "$state/pki/ca.key"
  openssl req -x509 -new -key "$state/pki/ca.key" -days 30 -subj /CN=eldr-test-cluster -out "$state/pki/ca.crt"
  # Tokens are signed with RSA, as in most clusters.
  openssl genrsa -out "$state/pki/sa.key" 2048 2>/dev/null
}

make_certificate() { # NAME COMMON-NAME ORGANISATION [SUBJECT-ALT-NAMES]
  local base=$state/pki/$1
  new_key "$base.key"
  printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth,serverAuth\n%s\n' "${4:+subjectAltName=$4}" >"$base.ext"
  openssl req -new -key "$base.key" -subj "/O=$3/CN=$2" |
    openssl x509 -req -CA "$state/pki/ca.crt" -CAkey "$state/pki/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 30 \
      -extfile "$base.ext" -out "$base.crt" 2>/dev/null
}

make_kubeconfig() { # NAME SERVER [CERTIFICATE]
  local base=$state/pki/${3:-$1}
  (umask 077 && : >"$state/$1.kubeconfig")
  cat >"$state/$1.kubeconfig" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster: {server: "$2", certificate-authority-data: $(base64 -w0 "$state/pki/ca.crt")}
users:
- name: $1
  user: {client-certificate-data: $(base64 -w0 "$base.crt"), client-key-data: $(base64 -w0 "$base.key")}
contexts:
- name: local
  context: {cluster: local, user: $1}
current-context: local
YAML
}

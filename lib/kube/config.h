// SPDX-License-Identifier: Apache-2.0
// Where the API server is and who we are: from a kubeconfig file or from a pod's service account.
// Plain values; thread-safe once made. Nothing here is ever logged: it holds secrets.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/status.h"

namespace eldr::kube {

/// What a program's surroundings say; filled once by main. Tests fill it by hand.
struct Environment {
  std::string kubeconfig{};    ///< $KUBECONFIG: one path, or several joined by ':'
  std::string home{};          ///< $HOME, for ~/.kube/config
  std::string service_host{};  ///< $KUBERNETES_SERVICE_HOST
  std::string service_port{};  ///< $KUBERNETES_SERVICE_PORT
  std::string service_account_directory = "/var/run/secrets/kubernetes.io/serviceaccount";
};
/// Reads the process environment. For main() only.
Environment environment_of_process();

/// PEM text, given as text or as a file that is read again whenever it is needed.
struct PemSource {
  std::string file{};
  std::string text{};
  bool empty() const { return file.empty() && text.empty(); }
  /// kInvalid naming the file when it cannot be read or is larger than 1 MiB.
  Result<std::string> read() const;
};

struct Config {
  std::string server{};  ///< "https://host:port" with an optional path, no slash at the end
  std::string default_namespace = "default";  ///< the context's, or the pod's own
  std::string origin{};                       ///< for messages: which file and context this came from
  PemSource certificate_authority;            ///< empty: the system's authorities
  PemSource client_certificate;
  PemSource client_key;
  std::string token{};            ///< static bearer token
  std::string token_file{};       ///< re-read every minute; wins over `token`
  std::string tls_server_name{};  ///< checked in the server's certificate instead of the host
  bool insecure_skip_tls_verify = false;
};

/// In this order: `explicit_path` (from --kubeconfig); $KUBECONFIG; the pod's service account, when
/// KUBERNETES_SERVICE_HOST and _PORT are set; ~/.kube/config. Errors are kInvalid (or kNotFound for a file
/// that does not exist) and name the file, the field, the value and what is allowed. exec and auth-provider
/// plugins are refused with a clear error.
Result<Config> load_config(const std::string& explicit_path, const Environment& environment);

/// One kubeconfig's text. Relative file names are resolved against `directory`; `origin` is used in messages.
Result<Config> parse_kubeconfig(std::string_view text, const std::string& directory,
                                const std::string& origin);

}  // namespace eldr::kube

// SPDX-License-Identifier: Apache-2.0
// What a main() needs: from a --kubeconfig flag to a client in one call.
#pragma once

#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"
#include "lib/kube/config.h"

namespace eldr::kube {

struct Connection {
  std::unique_ptr<Client> client;
  std::string server;             ///< for the log
  std::string default_namespace;  ///< the context's, or the pod's own
};

/// `program`: "operator" gives the user agent eldr-operator/<version>. Does not talk to the server yet. Call
/// init_http_threads() (cpprest_transport.h) first. The clock and the metrics must outlive the client.
Result<Connection> connect(const std::string& kubeconfig_flag, const Environment& environment,
                           const std::string& program, const Clock& clock, ClientMetrics* metrics = nullptr);

}  // namespace eldr::kube

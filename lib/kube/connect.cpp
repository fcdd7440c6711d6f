// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/connect.h"

#include <utility>

#include "lib/base/version.h"
#include "lib/kube/cpprest_transport.h"

namespace eldr::kube {

Result<Connection> connect(const std::string& kubeconfig_flag, const Environment& environment,
                           const std::string& program, const Clock& clock, ClientMetrics* metrics) {
  auto config = load_config(kubeconfig_flag, environment);
  if (!config) {
    return failure(config.error());
  }
  Connection connection;
  connection.server = config->server;
  connection.default_namespace = config->default_namespace;
  CpprestOptions options;
  options.user_agent = "eldr-" + program + "/" + kVersion;
  const std::string origin = config->origin;
  auto transport = make_cpprest_transport(std::move(*config), std::move(options), clock);
  if (!transport) {
    return failure(transport.error().with_context(origin));
  }
  connection.client = std::make_unique<Client>(std::shared_ptr<Transport>(std::move(*transport)),
                                               ClientOptions{}, clock, metrics);
  return connection;
}

}  // namespace eldr::kube

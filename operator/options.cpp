// SPDX-License-Identifier: Apache-2.0
#include "operator/options.h"

#include <CLI/CLI.hpp>

#include "lib/base/command_line.h"
#include "lib/base/exit_code.h"
#include "lib/base/version.h"

namespace eldr::op {

std::optional<int> parse_options(int argc, const char* const* argv, Options& options) {
  CLI::App app{"eldr-operator: runs EldrPolicy resources (expert-locality decode routing)", "eldr-operator"};
  app.set_version_flag("--version", std::string("eldr-operator ") + kVersion);
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Kubeconfig file; otherwise $KUBECONFIG, the pod's service account, ~/.kube/config")
      ->type_name("FILE");
  app.add_option("--namespaces", options.namespaces,
                 "Namespaces to look after, comma-separated; empty means all")
      ->delimiter(',')
      ->type_name("NAMES");
  app.add_option("--calibrator-image", options.calibrator_image, "Image of calibration Jobs")
      ->capture_default_str();
  app.add_option("--router-image", options.router_image, "Image of routers whose policy names none")
      ->capture_default_str();
  app.add_flag("--leader-elect", options.leader_elect, "Of several replicas let only one work (a Lease)");
  app.add_option("--lease-namespace", options.lease_namespace,
                 "Namespace of the Lease; otherwise the pod's own")
      ->type_name("NAME");
  app.add_option("--metrics-address", options.metrics_address, "Serves /metrics; empty switches it off")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--health-address", options.health_address,
                 "Serves /healthz and /readyz; empty switches it off")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app.add_option("--workers", options.workers, "Policies reconciled at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--log-format", options.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  try {
    app.parse(words_last_first(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  std::erase(options.namespaces, "");
  return std::nullopt;
}

}  // namespace eldr::op

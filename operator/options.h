// SPDX-License-Identifier: Apache-2.0
// The command line of eldr-operator.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace eldr::op {

struct Options {
  std::string kubeconfig;
  std::vector<std::string> namespaces;
  std::string calibrator_image = "eldr.dev/calibrate:dev";
  std::string router_image = "eldr.dev/router:dev";
  bool leader_elect = false;
  std::string lease_namespace;
  std::string metrics_address = "127.0.0.1:8080";
  std::string health_address = "127.0.0.1:8081";
  int workers = 4;
  std::string log_format = "text";
  std::string log_level = "info";
};

/// Fills `options`. Returns the exit code when the program should end now: 0 after --help or --version
/// (printed to standard output), 64 for a wrong command line (explained on standard error).
std::optional<int> parse_options(int argc, const char* const* argv, Options& options);

}  // namespace eldr::op

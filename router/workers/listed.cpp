// SPDX-License-Identifier: Apache-2.0
#include "router/workers/source.h"

namespace eldr::router {
namespace {

std::vector<WorkerSpec> specs_of(const std::vector<WorkerAddress>& addresses) {
  std::vector<WorkerSpec> specs;
  specs.reserve(addresses.size());
  for (const auto& address : addresses) {
    const bool v6 = address.host.find(':') != std::string::npos;
    std::string id = (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
    specs.push_back({std::move(id), address.host, address.port, address.cluster});
  }
  return specs;
}

}  // namespace

void publish_listed_workers(const Config& config, WorkerRegistry& registry) {
  registry.replace(Role::kPrefill, specs_of(config.prefill));
  registry.replace(Role::kDecode, specs_of(config.decode));
}

}  // namespace eldr::router

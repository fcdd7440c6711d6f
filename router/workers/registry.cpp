// SPDX-License-Identifier: Apache-2.0
#include "router/workers/registry.h"

#include <algorithm>

namespace eldr::router {
namespace {

WorkerPtr find_same(const std::vector<WorkerPtr>& workers, const WorkerSpec& spec) {
  for (const auto& worker : workers)
    if (worker->id == spec.id && worker->host == spec.host && worker->port == spec.port) return worker;
  return nullptr;
}

}  // namespace

bool WorkerRegistry::replace(Role role, std::vector<WorkerSpec> specs) {
  std::sort(specs.begin(), specs.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  const std::lock_guard lock(writers_);
  const auto before = set_.load();
  const auto& old = before->of(role);
  std::vector<WorkerPtr> workers;
  workers.reserve(specs.size());
  bool changed = specs.size() != old.size();
  for (const auto& spec : specs) {
    auto worker = find_same(old, spec);
    if (!worker) {
      worker = std::make_shared<Worker>(role, spec, health_);
      changed = true;
    } else if (worker->cluster() != spec.cluster) {
      worker->set_cluster(spec.cluster);
      changed = true;
    }
    workers.push_back(std::move(worker));
  }
  if (!changed) return false;
  auto after = std::make_shared<WorkerSet>(*before);
  (role == Role::kPrefill ? after->prefill : after->decode) = std::move(workers);
  set_.store(std::move(after));
  return true;
}

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// The workers there are now. Readers take an immutable snapshot; sources publish whole lists.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "router/workers/published.h"
#include "router/workers/worker.h"

namespace eldr::router {

/// Immutable lists of shared workers, in the order of their ids.
struct WorkerSet {
  std::vector<WorkerPtr> prefill;
  std::vector<WorkerPtr> decode;
  const std::vector<WorkerPtr>& of(Role role) const { return role == Role::kPrefill ? prefill : decode; }
};

/// Thread-safe. A worker that stays (same id, host and port) keeps its counters and health from list to list.
class WorkerRegistry {
 public:
  explicit WorkerRegistry(HealthConfig health) : health_(health) {}

  std::shared_ptr<const WorkerSet> snapshot() const { return set_.load(); }
  /// The whole list of one role. True if anything changed.
  bool replace(Role role, std::vector<WorkerSpec> specs);

 private:
  const HealthConfig health_;
  std::mutex writers_;
  Published<WorkerSet> set_{std::make_shared<const WorkerSet>()};
};

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// Where the list of workers comes from.
#pragma once

#include <memory>
#include <vector>

#include "lib/base/status.h"
#include "router/config/config.h"
#include "router/workers/registry.h"

namespace eldr::router {

/// A source that keeps a registry up to date by itself, on threads of its own. Thread-safe.
class WorkerSource {
 public:
  virtual ~WorkerSource() = default;  ///< stops
  /// Success once the registry holds what the source knows.
  virtual Status ready() const = 0;
};

/// The workers listed in the file, put into the registry.
void publish_listed_workers(const Config& config, WorkerRegistry& registry);

}  // namespace eldr::router

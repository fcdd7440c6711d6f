// SPDX-License-Identifier: Apache-2.0
// The admin port: health, metrics, the configuration and the workers as the router sees them, and why it
// would choose what it would choose.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "lib/http/admin.h"
#include "router/metrics/metrics.h"
#include "router/routing/routing.h"
#include "router/workers/registry.h"

namespace eldr::router {

/// All that the pages show; thread-safe accessors, called at each request.
struct AdminSources {
  std::function<std::shared_ptr<const Routing>()> routing;
  std::shared_ptr<WorkerRegistry> workers;
  const Clock* clock = nullptr;
  std::function<Status()> ready;
  std::shared_ptr<prometheus::Collectable> metrics;
};

/// GET /healthz, /readyz, /metrics, /eldr/v1/config, /eldr/v1/workers; POST /eldr/v1/explain.
http::AdminOptions admin_options(AdminSources sources);

/// The pages' JSON, for tests: compact text.
std::string config_page(const Routing& routing);
std::string workers_page(const WorkerSet& workers, Clock::Steady now);
/// `body`: an `eldr` object as on the wire, or {"layers": […], "counts": [[…], …]} with plain numbers.
/// kInvalid: neither.
Result<std::string> explain_page(const Routing& routing, const WorkerSet& workers, Clock::Steady now,
                                 const std::string& body);

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// What the threads of a server share, and what each has for itself.
#pragma once

#include <memory>

#include "router/config/config.h"
#include "router/metrics/metrics.h"
#include "router/routing/routing.h"
#include "router/server/upstream.h"
#include "router/workers/published.h"
#include "router/workers/registry.h"

namespace eldr::router {

/// Thread-safe; outlives the server.
struct ServerShared {
  ServerShared(const Clock& clock_in, Limits limits_in, Timeouts timeouts_in,
               std::shared_ptr<WorkerRegistry> workers_in)
      : clock(clock_in),
        limits(limits_in),
        timeouts(timeouts_in),
        workers(std::move(workers_in)),
        metrics(workers, [this] { return routing.load(); }) {}

  const Clock& clock;
  const Limits limits;
  const Timeouts timeouts;
  const std::shared_ptr<WorkerRegistry> workers;
  Published<Routing> routing;  ///< never null once serving
  Metrics metrics;
};

/// One thread's own. Used on that thread only.
struct ThreadContext {
  ThreadContext(ServerShared& shared_in, boost::asio::io_context& io_in, std::uint64_t seed)
      : shared(shared_in),
        io(io_in),
        deadlines(io_in, shared_in.clock),
        pool(deadlines, shared_in.limits.idle_per_worker),
        random(seed) {}

  std::uint64_t draw() { return mix(random++); }
  UpstreamContext upstream() { return {io, deadlines, pool, shared.limits, shared.timeouts}; }

  ServerShared& shared;
  boost::asio::io_context& io;
  Deadlines deadlines;
  UpstreamPool pool;
  std::uint64_t random;
};

}  // namespace eldr::router

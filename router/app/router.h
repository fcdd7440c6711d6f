// SPDX-License-Identifier: Apache-2.0
// The whole router but its command line: built from a loaded configuration, reloaded, drained, stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "router/config/file.h"
#include "router/workers/source.h"

namespace prometheus {
class Registry;
}

namespace eldr::router {

/// Makes the source for a configuration with `kubernetes`; given the registry to fill and where to put
/// metrics of its own.
using PodSourceFactory = std::function<Result<std::unique_ptr<WorkerSource>>(
    const KubernetesConfig&, std::shared_ptr<WorkerRegistry>, std::shared_ptr<prometheus::Registry>)>;

/// Thread-safe. Owns every thread it starts.
class Router {
 public:
  struct Options {
    const Clock* clock = nullptr;  ///< outlives the router
    std::uint64_t seed = 0;        ///< of the numbers that break ties
    PodSourceFactory pod_source;   ///< used when the configuration says `kubernetes`
  };
  static Result<std::unique_ptr<Router>> start(LoadedConfig loaded, Options options);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  std::uint16_t port() const;
  std::uint16_t admin_port() const;

  /// Takes over routing, centroids and listed workers; says in the log what needs a restart. On an error the
  /// present configuration stays.
  Status reload(LoadedConfig loaded);
  /// A changed file that could not even be read.
  void reload_failed(const Error& error);

  /// /readyz answers 503 from now on; traffic goes on.
  void leave_service();
  /// Stops listening and lets streams end for as long as the configuration says. True: all ended.
  bool drain();
  Milliseconds drain_limit() const;

 private:
  class Impl;
  explicit Router(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// Workers found by watching pods: one that is Ready and not terminating takes requests; its cluster is its
// label eldr.dev/cluster.
#pragma once

#include <memory>
#include <optional>

#include "lib/base/clock.h"
#include "lib/kube/client.h"
#include "lib/kube/random.h"
#include "router/workers/source.h"

namespace eldr::router {

/// The pod as a worker, if it is one now. `port` is the pool's. A label that is not a whole number from 0
/// reads as none: the pod is chosen by load alone.
std::optional<WorkerSpec> worker_of_pod(const kube::Json& pod, std::uint16_t port);

/// Watches both pools. Everything given outlives the source. Starts at once; ready() succeeds when both first
/// lists are in the registry. While the API server is away the last known workers stay.
std::unique_ptr<WorkerSource> watch_pods(const kube::Client& client, const KubernetesConfig& config,
                                         std::shared_ptr<WorkerRegistry> registry, const Clock& clock,
                                         kube::Random& random);

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// Phase 3: which pods of both pools can work?
#pragma once

#include "operator/phases/scope.h"

namespace eldr::op {

/// Fills scope.decode_pods and scope.workers_ready, and sets WorkersAvailable.
void find_workers(Scope& scope);

/// Ready and not about to go.
bool is_ready_worker(const Json& pod);

/// What holds a pod up, for people: an image that cannot be pulled, a crash, no node that fits. Empty:
/// nothing known.
std::string pod_trouble(const Json& pod);

}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
// Phase 2: how large is the decode pool, and which pods are it? The answer is in the scale subresource of
// whatever spec.decode.scaleTargetRef names, found by discovery. When spec.decode.replicas is set, the target
// is scaled to it.
#pragma once

#include "operator/phases/scope.h"

namespace eldr::op {

/// Fills scope.pool and scope.pool_since; sets WorkersAvailable only when it cannot.
void find_decode_pool(Scope& scope);

/// Whether the operator watches objects of that resource; the others are polled.
bool is_watched_target(const kube::Resource& resource);

}  // namespace eldr::op

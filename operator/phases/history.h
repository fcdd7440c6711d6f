// SPDX-License-Identifier: Apache-2.0
// Phase 7: old configurations. spec.configHistoryLimit of them are kept beside those in use, so that going
// back needs no calibration; a configuration that a live ReplicaSet of routers mounts is never deleted.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/phases/scope.h"

namespace eldr::op {

void prune_history(Scope& scope);

/// Names to delete: of `newest_first`, those that are not in use and beyond the first `limit` that are not.
/// Pure.
std::vector<std::string> beyond_limit(const std::vector<std::string>& newest_first,
                                      const std::set<std::string>& in_use, std::int64_t limit);

}  // namespace eldr::op

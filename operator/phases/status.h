// SPDX-License-Identifier: Apache-2.0
// Phase 8: the status, derived from the scope in one place and written once, only when it changed.
#pragma once

#include "operator/phases/scope.h"

namespace eldr::op {

/// The whole status that a reconcile's scope means. Pure.
PolicyStatus derive_status(const Scope& scope);

/// Writes it when it differs from the one that was read, and records events for conditions that people would
/// ask about.
Status write_status(Scope& scope);

}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
// Phase 1: is the calibration data there, and what identifies its content?
#pragma once

#include <string_view>

#include "lib/base/status.h"
#include "operator/phases/scope.h"

namespace eldr::op {

/// Sets DatasetAvailable and, when it holds, scope.dataset.
void find_dataset(Scope& scope);

/// Whether text is prompts as JSON lines: each line an object with "prompt" or "messages". At most 5 % of the
/// lines may be wrong, as for the calibrator. The error names lines, never their content.
Status check_prompts(std::string_view text);

}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
// The `eldr` object of a prefill answer's kv_transfer_params (docs/reference/formats.md), right and, on
// demand, wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lib/signature/counts.h"

namespace eldr::sim {

/// The key for `counts`, with the rows of `layers` in that order (all rows when empty; unknown layers are
/// left out).
nlohmann::json eldr_key(const signature::ExpertCounts& counts, const std::vector<std::int64_t>& layers);

/// The same made wrong; `form` as in Fault::form.
nlohmann::json bad_eldr_key(const nlohmann::json& good, const std::string& form);

}  // namespace eldr::sim

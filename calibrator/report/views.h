// SPDX-License-Identifier: Apache-2.0
// The analysis as text for people and as JSON for programs: the numbers of the page.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "calibrator/report/analysis/analysis.h"

namespace eldr::calibrator {

nlohmann::json to_json(const Analysis& analysis);
std::string text_of(const Analysis& analysis);

}  // namespace eldr::calibrator

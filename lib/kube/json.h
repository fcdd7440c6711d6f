// SPDX-License-Identifier: Apache-2.0
// The name under which API objects travel. Only declared here: include <nlohmann/json.hpp> in the .cpp that
// looks inside.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace eldr::kube {
using Json = nlohmann::json;
}  // namespace eldr::kube

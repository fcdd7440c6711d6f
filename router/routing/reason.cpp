// SPDX-License-Identifier: Apache-2.0
#include "router/routing/reason.h"

namespace eldr::router {

std::string_view name_of(Reason reason) {
  static constexpr std::array<std::string_view, kReasons> kNames = {
      "signature",    "policy",      "no_centroids", "no_transfer", "no_counts", "malformed",
      "low_coverage", "other_shape", "no_direction", "whole",       "no_prefill"};
  return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace eldr::router

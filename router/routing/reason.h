// SPDX-License-Identifier: Apache-2.0
// Why a decode worker was chosen the way it was: the label `reason` of eldr_router_decisions_total.
#pragma once

#include <array>
#include <string_view>

namespace eldr::router {

enum class Reason {
  kSignature,    ///< by similarity
  kPolicy,       ///< the policy does not look at signatures
  kNoCentroids,  ///< the router has no centroid file (yet)
  kNoTransfer,   ///< the prefill answer had no kv_transfer_params
  kNoCounts,     ///< no `eldr` key: a worker without the plugin
  kMalformed,    ///< an `eldr` key that cannot be read
  kLowCoverage,  ///< counts cover too little of the prompt
  kOtherShape,   ///< counts of another model, or a layer is missing
  kNoDirection,  ///< a zero signature
  kWhole,        ///< not sent through two legs (several prompts or choices)
  kNoPrefill,    ///< no prefill worker, and the configuration says decode alone
};
inline constexpr std::size_t kReasons = 11;

std::string_view name_of(Reason reason);

}  // namespace eldr::router

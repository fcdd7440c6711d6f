// SPDX-License-Identifier: Apache-2.0
#include "router/policies/load_only.h"
#include "router/policies/locality_band.h"
#include "router/policies/prefill.h"

namespace eldr::router {

std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

std::unique_ptr<DecodePolicy> make_decode_policy(const RoutingConfig& routing, double spread) {
  switch (routing.policy) {
    case DecodePolicyName::kLocalityBand:
      return std::make_unique<LocalityBand>(static_cast<float>(routing.tau));
    case DecodePolicyName::kLoadAwareBand: {
      const double beta = routing.load_weight.value_or(signature::kDefaultLoadWeight);
      return std::make_unique<LoadAwareBand>(static_cast<float>(beta * spread));
    }
    case DecodePolicyName::kJoinShortestQueue:
      return std::make_unique<JoinShortestQueue>();
    case DecodePolicyName::kPowerOfTwoChoices:
      return std::make_unique<PowerOfTwoChoices>();
    case DecodePolicyName::kRoundRobin:
      return std::make_unique<RoundRobin>();
    case DecodePolicyName::kRandom:
      return std::make_unique<Random>();
  }
  return nullptr;
}

std::unique_ptr<PrefillPolicy> make_prefill_policy(const RoutingConfig& routing) {
  switch (routing.prefill_policy) {
    case PrefillPolicyName::kPrefixHash:
      return std::make_unique<PrefixHash>(routing.prefix_bytes);
    case PrefillPolicyName::kJoinShortestQueue:
      return std::make_unique<PrefillByLoad>(std::make_unique<JoinShortestQueue>());
    case PrefillPolicyName::kPowerOfTwoChoices:
      return std::make_unique<PrefillByLoad>(std::make_unique<PowerOfTwoChoices>());
    case PrefillPolicyName::kRoundRobin:
      return std::make_unique<PrefillByLoad>(std::make_unique<RoundRobin>());
    case PrefillPolicyName::kRandom:
      return std::make_unique<PrefillByLoad>(std::make_unique<Random>());
  }
  return nullptr;
}

}  // namespace eldr::router

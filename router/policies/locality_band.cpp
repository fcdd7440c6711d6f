// SPDX-License-Identifier: Apache-2.0
#include "router/policies/locality_band.h"

namespace eldr::router {

Choice LocalityBand::choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const {
  const auto band = signature::locality_band(candidates, tau_);
  return {signature::least_loaded(candidates, band, draw), band.size()};
}

Choice LoadAwareBand::choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const {
  return {signature::load_aware_choice(candidates, beta_sigma_, draw), candidates.size()};
}

}  // namespace eldr::router

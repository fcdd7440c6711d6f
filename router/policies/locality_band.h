// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "router/policies/policy.h"

namespace eldr::router {

/// The paper's: of the workers whose similarity is within tau of the best, the least loaded.
class LocalityBand final : public DecodePolicy {
 public:
  explicit LocalityBand(float tau) : tau_(tau) {}
  Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const override;
  bool uses_signature() const override { return true; }

 private:
  float tau_;
};

/// The band whose width follows the load gap: argmax sim - beta*sigma*(n - mean)/(mean + 1). Nearly the
/// band's median, without its tail when traffic is not spread as the calibration set was.
class LoadAwareBand final : public DecodePolicy {
 public:
  explicit LoadAwareBand(float beta_sigma) : beta_sigma_(beta_sigma) {}
  Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const override;
  bool uses_signature() const override { return true; }

 private:
  float beta_sigma_;
};

}  // namespace eldr::router

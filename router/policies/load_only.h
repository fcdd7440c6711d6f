// SPDX-License-Identifier: Apache-2.0
// The baselines: policies that look at load, or at nothing.
#pragma once

#include <atomic>

#include "router/policies/policy.h"

namespace eldr::router {

/// The fewest in flight; ties spread evenly.
class JoinShortestQueue final : public DecodePolicy {
 public:
  Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const override;
};

/// Two different workers at random, the less loaded of them.
class PowerOfTwoChoices final : public DecodePolicy {
 public:
  Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const override;
};

/// One after the other.
class RoundRobin final : public DecodePolicy {
 public:
  Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const override;

 private:
  mutable std::atomic<std::uint64_t> next_{0};
};

class Random final : public DecodePolicy {
 public:
  Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const override;
};

}  // namespace eldr::router

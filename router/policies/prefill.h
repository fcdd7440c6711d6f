// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "router/policies/policy.h"

namespace eldr::router {

/// Requests with the same beginning go to the same worker, whose prefix cache then holds it. Rendezvous
/// hashing: when workers come and go, only the prefixes of those move. A worker that already has more than
/// its fair share takes no new ones (bounded loads): the next in the prefix's own order takes over.
class PrefixHash final : public PrefillPolicy {
 public:
  /// Fair share: kSlack times the mean load with this request, but never under kFloor in flight.
  static constexpr double kSlack = 1.25;
  static constexpr std::uint32_t kFloor = 4;

  explicit PrefixHash(std::size_t prefix_bytes) : prefix_bytes_(prefix_bytes) {}
  std::size_t choose(std::span<const PrefillCandidate> candidates, std::string_view prompt,
                     std::uint64_t draw) const override;

 private:
  std::size_t prefix_bytes_;
};

/// A decode policy that looks at load, used for prefill workers.
class PrefillByLoad final : public PrefillPolicy {
 public:
  explicit PrefillByLoad(std::unique_ptr<DecodePolicy> policy) : policy_(std::move(policy)) {}
  std::size_t choose(std::span<const PrefillCandidate> candidates, std::string_view prompt,
                     std::uint64_t draw) const override;

 private:
  std::unique_ptr<DecodePolicy> policy_;
};

}  // namespace eldr::router

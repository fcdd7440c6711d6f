// SPDX-License-Identifier: Apache-2.0
// How a worker is chosen. One small class for each policy; all are immutable or use atomics, so one instance
// serves every thread. `draw` is a fresh random number: a policy holds no generator of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "lib/signature/band.h"
#include "router/config/config.h"

namespace eldr::router {

struct Choice {
  std::size_t index = 0;  ///< into the candidates given
  std::size_t band = 0;   ///< how many candidates the choice was among
};

/// Chooses a decode worker. `candidates` is never empty.
class DecodePolicy {
 public:
  virtual ~DecodePolicy() = default;
  virtual Choice choose(std::span<const signature::Candidate> candidates, std::uint64_t draw) const = 0;
  /// Whether similarities matter to it; if not, counts are not even asked for.
  virtual bool uses_signature() const { return false; }
};

/// `spread` is the centroid file's sigma: LoadAwareBand's weight is loadWeight * spread.
std::unique_ptr<DecodePolicy> make_decode_policy(const RoutingConfig& routing, double spread);

struct PrefillCandidate {
  std::uint64_t id_hash = 0;  ///< of the worker's id
  std::uint32_t in_flight = 0;
};

/// Chooses a prefill worker. `prompt` is the prompt's raw bytes; `candidates` is never empty.
class PrefillPolicy {
 public:
  virtual ~PrefillPolicy() = default;
  virtual std::size_t choose(std::span<const PrefillCandidate> candidates, std::string_view prompt,
                             std::uint64_t draw) const = 0;
};

std::unique_ptr<PrefillPolicy> make_prefill_policy(const RoutingConfig& routing);

/// A second number from a draw (splitmix64's finaliser), for policies that need two.
std::uint64_t mix(std::uint64_t value);

}  // namespace eldr::router

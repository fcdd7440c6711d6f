// SPDX-License-Identifier: Apache-2.0
// Which experts the gates choose: the simulated model. See README.md for the facts that it follows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"
#include "lib/signature/trace.h"
#include "tests/sim/random.h"
#include "tests/sim/text_profile.h"

namespace eldr::sim {

struct ModelShape {
  std::vector<std::int32_t> layers;  ///< model layer numbers of the MoE layers, length L
  std::uint32_t experts = 64;        ///< E
  std::uint32_t top_k = 6;           ///< K

  std::size_t layer_count() const { return layers.size(); }
  std::size_t picks() const { return layers.size() * top_k; }  ///< expert ids a token, L * K
};

/// Cumulative expert weights [L][E] from which tokens draw. Immutable.
class ExpertWeights {
 public:
  ExpertWeights(const ModelShape& shape, std::span<const float> weights);  ///< weights [L][E], >= 0
  /// top_k different experts for each layer, `picks` [L][K].
  void draw(Random& random, std::span<std::uint16_t> picks) const;

 private:
  std::size_t layers_, experts_, top_k_;
  std::vector<float> cumulative_;  // [L][E]
};

/// The experts of one request's tokens, in order. Not thread-safe.
class ExpertStream {
 public:
  virtual ~ExpertStream() = default;
  virtual void next_prompt_token(std::span<std::uint16_t> picks) = 0;  ///< [L][K]
  virtual void next_decode_token(std::span<std::uint16_t> picks) = 0;  ///< [L][K]
};

/// Thread-safe: streams are made from any thread.
class ExpertModel {
 public:
  virtual ~ExpertModel() = default;
  virtual const ModelShape& shape() const = 0;
  /// The same text and variant give the same experts, in every worker with the same model. `variant` tells
  /// apart several answers to one prompt: it changes decode tokens only. The model must outlive the stream.
  virtual std::unique_ptr<ExpertStream> open(std::string_view text, const TextProfile& profile,
                                             std::uint64_t variant) const = 0;
};

/// Log-linear profiles: weight(l, e) = exp(sum of seeded normal parts): what all requests share, the
/// domain's, the language's, the request's own, and what prefill and decode do not share.
std::unique_ptr<ExpertModel> make_profile_model(ModelShape shape, std::uint64_t seed);

/// Experts of recorded requests: a prompt takes a request whose label is its domain (where the trace has
/// other labels, they are dealt to the domains in order), chosen by the hash of its text. kInvalid: a trace
/// without requests. Recorded decode tokens are replayed where the trace has them, else drawn from its
/// counts.
Result<std::unique_ptr<ExpertModel>> make_trace_model(signature::Trace trace);

}  // namespace eldr::sim

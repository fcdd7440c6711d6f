// SPDX-License-Identifier: Apache-2.0
// The expert model of a recorded trace.
#include <algorithm>
#include <map>

#include "tests/sim/experts.h"

namespace eldr::sim {
namespace {

// Keeps an expert that a request never used possible, since a drawn token needs top_k different ones.
constexpr float kFloor = 1e-4F;

std::vector<float> weights_of(std::span<const std::uint32_t> counts) {
  std::vector<float> weights(counts.size());
  std::transform(counts.begin(), counts.end(), weights.begin(),
                 [](std::uint32_t c) { return static_cast<float>(c) + kFloor; });
  return weights;
}

class ReplayStream final : public ExpertStream {
 public:
  ReplayStream(const ModelShape& shape, std::span<const std::uint32_t> prefill,
               std::span<const std::uint32_t> decode, std::span<const std::uint16_t> recorded,
               std::uint64_t prompt_seed, std::uint64_t decode_seed)
      : prompt_(shape, weights_of(prefill)),
        decode_(shape, weights_of(decode)),
        recorded_(recorded),
        picks_(shape.picks()),
        prompt_random_(prompt_seed),
        decode_random_(decode_seed) {}

  void next_prompt_token(std::span<std::uint16_t> picks) override { prompt_.draw(prompt_random_, picks); }
  void next_decode_token(std::span<std::uint16_t> picks) override {
    if (recorded_.empty()) {
      decode_.draw(decode_random_, picks);
      return;
    }
    const std::size_t at =
        (token_++ * picks_) % recorded_.size();  // an answer longer than the recorded one repeats it
    std::copy_n(recorded_.begin() + static_cast<std::ptrdiff_t>(at), picks_, picks.begin());
  }

 private:
  ExpertWeights prompt_;
  ExpertWeights decode_;
  std::span<const std::uint16_t> recorded_;  // [tokens][L][K], of the trace
  std::size_t picks_;
  std::size_t token_ = 0;
  Random prompt_random_;
  Random decode_random_;
};

class TraceModel final : public ExpertModel {
 public:
  explicit TraceModel(signature::Trace trace) : trace_(std::move(trace)) {
    shape_.layers = trace_.layers;
    shape_.experts = trace_.experts;
    shape_.top_k = trace_.top_k;
    for (std::size_t r = 0; r < trace_.requests(); ++r) {
      requests_[trace_.labels.empty() ? std::string() : trace_.labels[r]].push_back(r);
    }
  }

  const ModelShape& shape() const override { return shape_; }

  std::unique_ptr<ExpertStream> open(std::string_view text, const TextProfile& profile,
                                     std::uint64_t variant) const override {
    const std::uint64_t seed = hash_text(text);
    const std::vector<std::size_t>& candidates = requests_for(profile);
    const std::size_t r = candidates[seed % candidates.size()];
    std::span<const std::uint16_t> recorded;
    if (!trace_.decode_offsets.empty()) {
      const std::size_t picks = shape_.picks();
      recorded = std::span(trace_.decode_experts)
                     .subspan(trace_.decode_offsets[r] * picks,
                              (trace_.decode_offsets[r + 1] - trace_.decode_offsets[r]) * picks);
    }
    return std::make_unique<ReplayStream>(shape_, trace_.prefill(r), trace_.decode(r), recorded, seed + 1,
                                          hash_text("decode", seed + variant));
  }

 private:
  const std::vector<std::size_t>& requests_for(const TextProfile& profile) const {
    if (const auto it = requests_.find(std::string(name_of(profile.domain))); it != requests_.end()) {
      return it->second;
    }
    const auto nth = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(profile.domain) % requests_.size());
    return std::next(requests_.begin(), nth)->second;
  }

  signature::Trace trace_;
  ModelShape shape_;
  std::map<std::string, std::vector<std::size_t>> requests_;  // by label
};

}  // namespace

Result<std::unique_ptr<ExpertModel>> make_trace_model(signature::Trace trace) {
  if (trace.requests() == 0 || trace.top_k == 0 || trace.top_k > trace.experts) {
    return failure(Code::kInvalid, "trace: needs at least one request and 1 <= top_k <= experts");
  }
  return std::make_unique<TraceModel>(std::move(trace));
}

}  // namespace eldr::sim

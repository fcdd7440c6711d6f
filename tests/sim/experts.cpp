// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/experts.h"

#include <algorithm>

namespace eldr::sim {

ExpertWeights::ExpertWeights(const ModelShape& shape, std::span<const float> weights)
    : layers_(shape.layer_count()),
      experts_(shape.experts),
      top_k_(shape.top_k),
      cumulative_(weights.size()) {
  for (std::size_t l = 0; l < layers_; ++l) {
    float sum = 0;
    for (std::size_t e = 0; e < experts_; ++e) {
      sum += weights[l * experts_ + e];
      cumulative_[l * experts_ + e] = sum;
    }
  }
}

void ExpertWeights::draw(Random& random, std::span<std::uint16_t> picks) const {
  // Drawing again on a repetition is drawing without replacement. Where few experts hold nearly all weight,
  // the rest of the picks are the next free ones.
  constexpr int kMostTries = 24;
  for (std::size_t l = 0; l < layers_; ++l) {
    const float* begin = cumulative_.data() + l * experts_;
    const float* end = begin + experts_;
    const float total = end[-1];
    std::uint16_t* row = picks.data() + l * top_k_;
    const auto is_new = [&](std::size_t k, std::uint16_t e) { return std::find(row, row + k, e) == row + k; };
    for (std::size_t k = 0; k < top_k_; ++k) {
      std::uint16_t chosen = 0;
      bool found = false;
      for (int tries = 0; tries < kMostTries && !found && total > 0; ++tries) {
        const float at = static_cast<float>(random.uniform()) * total;
        const auto* it = std::min(std::upper_bound(begin, end, at), end - 1);
        chosen = static_cast<std::uint16_t>(it - begin);
        found = is_new(k, chosen);
      }
      while (!found) {
        chosen = static_cast<std::uint16_t>((chosen + 1U) % experts_);
        found = is_new(k, chosen);
      }
      row[k] = chosen;
    }
  }
}

namespace {

// Tuned over the project's own prompts so that the figures of README.md hold; experts_facts_test.cpp holds
// them there.
constexpr double kShared = 0.9;
constexpr double kDomain = 1.4;
constexpr double kLanguage = 0.6;
constexpr double kOwn = 0.4;
constexpr double kPhase = 0.6;

class DrawnStream final : public ExpertStream {
 public:
  DrawnStream(ExpertWeights prompt, ExpertWeights decode, std::uint64_t prompt_seed,
              std::uint64_t decode_seed)
      : prompt_(std::move(prompt)),
        decode_(std::move(decode)),
        prompt_random_(prompt_seed),
        decode_random_(decode_seed) {}
  void next_prompt_token(std::span<std::uint16_t> picks) override { prompt_.draw(prompt_random_, picks); }
  void next_decode_token(std::span<std::uint16_t> picks) override { decode_.draw(decode_random_, picks); }

 private:
  ExpertWeights prompt_;
  ExpertWeights decode_;
  Random prompt_random_;
  Random decode_random_;
};

class ProfileModel final : public ExpertModel {
 public:
  ProfileModel(ModelShape shape, std::uint64_t seed) : shape_(std::move(shape)), seed_(seed) {
    const std::vector<float> shared = normals("shared", kShared);
    const std::vector<float> prefill = sum(shared, normals("phase/prefill", kPhase));
    const std::vector<float> decode = sum(shared, normals("phase/decode", kPhase));
    for (int d = 0; d < kDomains; ++d) {
      const auto domain = normals("domain/" + std::string(name_of(static_cast<Domain>(d))), kDomain);
      prefill_.push_back(sum(prefill, domain));
      decode_.push_back(sum(decode, domain));
    }
    for (int g = 0; g < kLanguages; ++g) {
      language_.push_back(normals("language/" + std::string(name_of(static_cast<Language>(g))), kLanguage));
    }
  }

  const ModelShape& shape() const override { return shape_; }

  std::unique_ptr<ExpertStream> open(std::string_view text, const TextProfile& profile,
                                     std::uint64_t variant) const override {
    const std::uint64_t request_seed = hash_text(text, seed_);
    const std::size_t n = shape_.layer_count() * shape_.experts;
    const auto& domain_prefill = prefill_[static_cast<std::size_t>(profile.domain)];
    const auto& domain_decode = decode_[static_cast<std::size_t>(profile.domain)];
    const auto& language = language_[static_cast<std::size_t>(profile.language)];
    std::vector<float> prefill(n);
    std::vector<float> decode(n);
    Random own(request_seed);
    for (std::size_t i = 0; i < n; ++i) {
      const float common = language[i] + static_cast<float>(kOwn * own.normal());
      prefill[i] = std::exp(domain_prefill[i] + common);
      decode[i] = std::exp(domain_decode[i] + common);
    }
    return std::make_unique<DrawnStream>(ExpertWeights(shape_, prefill), ExpertWeights(shape_, decode),
                                         request_seed + 1, hash_text("decode", request_seed + variant));
  }

 private:
  std::vector<float> normals(const std::string& name, double sigma) const {
    Random random(hash_text(name, seed_));
    std::vector<float> values(shape_.layer_count() * shape_.experts);
    for (float& v : values) {
      v = static_cast<float>(sigma * random.normal());
    }
    return values;
  }
  static std::vector<float> sum(std::vector<float> a, const std::vector<float>& b) {
    std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::plus<>());
    return a;
  }

  ModelShape shape_;
  std::uint64_t seed_;
  std::vector<std::vector<float>> prefill_;   // [domain][L*E], logarithms
  std::vector<std::vector<float>> decode_;    // [domain][L*E]
  std::vector<std::vector<float>> language_;  // [language][L*E]
};

}  // namespace

std::unique_ptr<ExpertModel> make_profile_model(ModelShape shape, std::uint64_t seed) {
  return std::make_unique<ProfileModel>(std::move(shape), seed);
}

}  // namespace eldr::sim

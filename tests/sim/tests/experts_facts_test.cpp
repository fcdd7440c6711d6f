// SPDX-License-Identifier: Apache-2.0
// The simulated model against the published facts, measured over the project's own prompts (README.md:
// "Facts").
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/sim/experts.h"
#include "tests/sim/tests/prompt_files.h"
#include "tests/sim/tokens.h"

namespace eldr::sim {
namespace {

constexpr int kAnswerTokens = 64;

struct Observed {
  std::string label;
  Language language = Language::kOther;
  std::vector<float> prefill;                      // [L*E], unit length
  std::vector<float> decode;                       // [L*E], unit length
  std::vector<std::vector<std::uint16_t>> tokens;  // decode, [token][L][K]
};

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0F);
}

void normalise(std::vector<float>& v) {
  const float length = std::sqrt(dot(v, v));
  for (float& x : v) {
    x /= length;
  }
}

class ExpertFacts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    shape_.layers.resize(8);
    std::iota(shape_.layers.begin(), shape_.layers.end(), 0);
    const auto model = make_profile_model(shape_, 0);
    for (const auto& p : testing::read_prompts("generate.py", 240, 3)) {
      observed_.push_back(observe(*model, p));
    }
  }

  static Observed observe(const ExpertModel& model, const testing::LabelledPrompt& p) {
    Observed o;
    o.label = p.label;
    const TextProfile profile = profile_of(p.prompt);
    o.language = profile.language;
    o.prefill.assign(shape_.layer_count() * shape_.experts, 0);
    o.decode = o.prefill;
    const auto stream = model.open(p.prompt, profile, 0);
    std::vector<std::uint16_t> picks(shape_.picks());
    const auto count = [&](std::vector<float>& into) {
      for (std::size_t i = 0; i < picks.size(); ++i) {
        into[i / shape_.top_k * shape_.experts + picks[i]] += 1;
      }
    };
    for (std::size_t t = 0; t < tokenize(p.prompt).size(); ++t) {
      stream->next_prompt_token(picks);
      count(o.prefill);
    }
    for (int t = 0; t < kAnswerTokens; ++t) {
      stream->next_decode_token(picks);
      count(o.decode);
      o.tokens.push_back(picks);
    }
    normalise(o.prefill);
    normalise(o.decode);
    return o;
  }

  // Mean over layers of the distinct experts of a step, each request at a random token of its answer; mean of
  // batches.
  template <class Member>
  static double distinct(std::size_t batch, Member is_member, Random& random) {
    std::vector<const Observed*> pool;
    for (const Observed& o : observed_) {
      if (is_member(o)) {
        pool.push_back(&o);
      }
    }
    constexpr int kBatches = 200;
    double sum = 0;
    std::vector<char> active(shape_.layer_count() * shape_.experts);
    for (int b = 0; b < kBatches; ++b) {
      std::fill(active.begin(), active.end(), 0);
      for (std::size_t i = 0; i < batch; ++i) {
        const Observed& o = *pool[random.below(pool.size())];
        const auto& picks = o.tokens[random.below(o.tokens.size())];
        for (std::size_t j = 0; j < picks.size(); ++j) {
          active[j / shape_.top_k * shape_.experts + picks[j]] = 1;
        }
      }
      sum += static_cast<double>(std::count(active.begin(), active.end(), 1));
    }
    return sum / kBatches / static_cast<double>(shape_.layer_count());
  }

  static inline ModelShape shape_;
  static inline std::vector<Observed> observed_;
};

TEST_F(ExpertFacts, PrefillPredictsDecode) {
  ASSERT_EQ(observed_.size(), 240U);
  double own = 0;
  double same = 0;
  double other = 0;
  int same_pairs = 0;
  int other_pairs = 0;
  for (std::size_t i = 0; i < observed_.size(); ++i) {
    own += dot(observed_[i].prefill, observed_[i].decode);
    for (std::size_t j = 0; j < observed_.size(); ++j) {
      if (i != j) {
        const bool alike = observed_[i].label == observed_[j].label;
        (alike ? same : other) += dot(observed_[i].prefill, observed_[j].decode);
        ++(alike ? same_pairs : other_pairs);
      }
    }
  }
  own /= static_cast<double>(observed_.size());
  same /= same_pairs;
  other /= other_pairs;
  std::cout << "cosine of prefill with decode: own " << own << ", same domain " << same << ", other domain "
            << other << "\n";
  EXPECT_GT(own, same + 0.02);
  EXPECT_GE(same, 0.60);
  EXPECT_LE(own, 0.92);
  EXPECT_GT(same, other + 0.14);  // ESFT: 0.628 against 0.484
  EXPECT_GE(other, 0.25);
  EXPECT_LE(other, 0.55);
}

TEST_F(ExpertFacts, ExpertsCorrelateBetweenPrefillAndDecode) {
  // Pearson over all (request, layer, expert) shares; the paper has 0.70 to 0.92 for three models.
  double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (const Observed& o : observed_) {
    const double px = std::accumulate(o.prefill.begin(), o.prefill.end(), 0.0);
    const double py = std::accumulate(o.decode.begin(), o.decode.end(), 0.0);
    for (std::size_t i = 0; i < o.prefill.size(); ++i) {
      const double x = o.prefill[i] / px;
      const double y = o.decode[i] / py;
      n += 1, sx += x, sy += y, sxx += x * x, syy += y * y, sxy += x * y;
    }
  }
  const double r = (n * sxy - sx * sy) / std::sqrt((n * sxx - sx * sx) * (n * syy - sy * sy));
  std::cout << "correlation of prefill with decode: " << r << "\n";
  EXPECT_GE(r, 0.70);
  EXPECT_LE(r, 0.92);
}

TEST_F(ExpertFacts, SameDomainBatchesReadFewerExperts) {
  Random random(1);
  for (const std::size_t batch : {8U, 16U, 32U}) {
    const double mixed = distinct(
        batch, [](const Observed&) { return true; }, random);
    double same = 0;
    for (const char* label : {"code", "math", "medical", "legal"}) {
      same += distinct(
                  batch, [&](const Observed& o) { return o.label == label; }, random) /
              4;
    }
    double language = 0;
    for (const Language l : {Language::kEn, Language::kDe, Language::kFr}) {
      language += distinct(
                      batch, [&](const Observed& o) { return o.language == l; }, random) /
                  3;
    }
    std::cout << "batch " << batch << ": mixed " << mixed << ", same domain " << same << " ("
              << 1 - same / mixed << " fewer), same language " << language << " (" << 1 - language / mixed
              << " fewer)\n";
    EXPECT_GE(1 - same / mixed, 0.15) << batch;  // the paper: 17 to 21 %
    EXPECT_LE(1 - same / mixed, 0.23) << batch;
    EXPECT_GE(1 - language / mixed, 0.01) << batch;  // the paper: 3 to 10 %
    EXPECT_LE(1 - language / mixed, 0.11) << batch;
  }
}

}  // namespace
}  // namespace eldr::sim

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/layer_selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

using signature::Transform;

struct Named {
  std::size_t requests;
  Transform transform;
};

std::vector<std::size_t> upto(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

Result<LayerSelection> select(const signature::Trace& trace, Transform transform, unsigned threads,
                              std::size_t max_layers = 0) {
  const auto requests = upto(trace.requests());
  const auto layers = upto(trace.layers.size());
  const auto backend = make_cpu_backend(threads);
  auto scorer = backend->layer_scorer(
      prefill_features(trace, requests, layers, transform, idf_of(trace, requests, transform)),
      decode_features(trace, requests));
  if (!scorer) {
    return failure(scorer.error());
  }
  return select_layers(**scorer, layers.size(), max_layers, [](std::size_t, std::size_t) { return true; });
}

TEST(LayerSelection, IsThatOfAPlainComputation) {
  // 150 requests span three tiles of the Gram matrix.
  for (const auto& [requests, transform] :
       {Named{150, Transform::kCountIdf}, Named{40, Transform::kCount}, Named{40, Transform::kSqrtCount},
        Named{40, Transform::kBinary}}) {
    const auto trace = samples::trace(requests, {.requests = requests, .layers = 5});
    const auto selection = select(trace, transform, 2);
    ASSERT_TRUE(selection);
    std::vector<std::size_t> chosen;
    std::vector<double> rhos;
    while (chosen.size() < trace.layers.size()) {
      double best = -2;
      std::size_t best_layer = 0;
      for (std::size_t layer = 0; layer < trace.layers.size(); ++layer) {
        if (std::find(chosen.begin(), chosen.end(), layer) != chosen.end()) {
          continue;
        }
        auto candidate = chosen;
        candidate.push_back(layer);
        if (const double rho = samples::rho(trace, candidate, transform); rho > best) {
          best = rho;
          best_layer = layer;
        }
      }
      chosen.push_back(best_layer);
      rhos.push_back(best);
    }
    EXPECT_EQ(selection->order, chosen) << name_of(transform);
    for (std::size_t i = 0; i < rhos.size(); ++i) {
      EXPECT_NEAR(selection->rhos[i], rhos[i], 1e-6) << name_of(transform) << ", step " << i;
    }
    const auto peak = std::max_element(rhos.begin(), rhos.end()) - rhos.begin() + 1;
    EXPECT_EQ(selection->keep, static_cast<std::size_t>(peak));
  }
}

TEST(LayerSelection, DoesNotDependOnThreads) {
  const auto trace = samples::trace(3, {.requests = 140, .layers = 7});
  const auto one = select(trace, Transform::kCountIdf, 1);
  for (const unsigned threads : {2U, 3U, 8U}) {
    const auto many = select(trace, Transform::kCountIdf, threads);
    EXPECT_EQ(many->order, one->order);
    EXPECT_EQ(many->rhos, one->rhos);  // to the last bit
  }
}

TEST(LayerSelection, KeepsAtMostMaxLayers) {
  const auto trace = samples::trace(4, {.requests = 30, .layers = 6});
  const auto selection = select(trace, Transform::kCount, 1, 1);
  EXPECT_EQ(selection->keep, 1U);
  EXPECT_EQ(selection->order.size(), 6U);  // the curve is whole all the same
}

TEST(LayerSelection, ALayerWithoutAnySignalIsNoTrouble) {
  auto trace = samples::trace(5, {.requests = 30, .layers = 3});
  for (std::size_t r = 0; r < trace.requests();
       ++r) {  // every request uses every expert of layer 1: its idf is 0
    for (std::size_t e = 0; e < trace.experts; ++e) {
      trace.prefill_counts[(r * 3 + 1) * trace.experts + e] = 1;
    }
  }
  const auto selection = select(trace, Transform::kCountIdf, 2);
  ASSERT_TRUE(selection);
  EXPECT_EQ(selection->order.size(), 3U);
  for (const double rho : selection->rhos) {
    EXPECT_TRUE(std::isfinite(rho));
  }
}

TEST(LayerSelection, StopsWhenAsked) {
  const auto trace = samples::trace(6, {.requests = 20, .layers = 4});
  const auto requests = upto(20);
  const auto layers = upto(4);
  auto scorer =
      make_cpu_backend(1)->layer_scorer(prefill_features(trace, requests, layers, Transform::kCount,
                                                         idf_of(trace, requests, Transform::kCount)),
                                        decode_features(trace, requests));
  const auto selection =
      select_layers(**scorer, 4, 0, [](std::size_t done, std::size_t) { return done < 2; });
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().code, Code::kCancelled);
}

TEST(LayerSelection, OneRequestHasNoPairs) {
  const auto trace = samples::trace(7, {.requests = 1, .layers = 2});
  const auto selection = select(trace, Transform::kCount, 1);
  ASSERT_FALSE(selection);
  EXPECT_EQ(selection.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace eldr::calibrator

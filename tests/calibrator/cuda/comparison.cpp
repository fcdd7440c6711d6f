// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrator/cuda/comparison.h"

#include <numeric>

#include <gtest/gtest.h>

namespace eldr::calibrator::cuda {
namespace {

std::vector<std::size_t> upto(std::size_t n) {
  std::vector<std::size_t> all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

Sides sides_of(const signature::Trace& trace, signature::Transform transform) {
  const auto requests = upto(trace.requests());
  return {prefill_features(trace, requests, upto(trace.layers.size()), transform,
                           idf_of(trace, requests, transform)),
          decode_features(trace, requests)};
}

LayerSelection select(FitBackend& backend, const Sides& sides) {
  const auto scorer = backend.layer_scorer(sides.prefill, sides.decode);
  if (!scorer) {
    ADD_FAILURE() << scorer.error().message;
    return {};
  }
  const auto selection =
      select_layers(**scorer, sides.prefill.layers(), 0, [](std::size_t, std::size_t) { return true; });
  if (!selection) {
    ADD_FAILURE() << selection.error().message;
    return {};
  }
  return *selection;
}

void expect_same(const LayerSelection& ours, const LayerSelection& theirs, double tolerance) {
  EXPECT_EQ(ours.order, theirs.order);
  EXPECT_EQ(ours.keep, theirs.keep);
  ASSERT_EQ(ours.rhos.size(), theirs.rhos.size());
  for (std::size_t i = 0; i < ours.rhos.size(); ++i) {
    EXPECT_NEAR(ours.rhos[i], theirs.rhos[i], tolerance) << "layer " << ours.order[i];
  }
}

}  // namespace eldr::calibrator::cuda

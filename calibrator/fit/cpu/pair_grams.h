// SPDX-License-Identifier: Apache-2.0
// Inner products of all pairs of requests, layer by layer and over all layers.
#pragma once

#include <cstdint>
#include <vector>

#include "calibrator/fit/features.h"

namespace eldr::calibrator::cpu {

/// Per layer: the strict upper triangle packed in pair order (pairs.h), the diagonal beside it.
struct PairGrams {
  std::size_t requests = 0;
  std::vector<std::vector<float>> pairs;       ///< [layer][pair]
  std::vector<std::vector<double>> diagonals;  ///< [layer][request]
};
PairGrams gram_pairs(const LayerFeatures& features, unsigned threads);

/// The same summed over the layers.
struct SummedGram {
  std::vector<double> pairs;     ///< [pair]
  std::vector<double> diagonal;  ///< [request]
};
SummedGram summed_gram(const LayerFeatures& features, unsigned threads);

}  // namespace eldr::calibrator::cpu

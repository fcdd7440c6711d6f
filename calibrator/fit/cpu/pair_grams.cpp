// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/cpu/pair_grams.h"

#include "calibrator/fit/cpu/gram_tile.h"
#include "calibrator/fit/pairs.h"

namespace eldr::calibrator::cpu {

PairGrams gram_pairs(const LayerFeatures& features, unsigned threads) {
  const std::size_t n = features.requests();
  PairGrams grams;
  grams.requests = n;
  grams.pairs.resize(features.layers());
  grams.diagonals.resize(features.layers());
  for (std::size_t layer = 0; layer < features.layers(); ++layer) {
    grams.pairs[layer].resize(pair_count(n));
    grams.diagonals[layer].resize(n);
  }
  const std::size_t tiles = tile_count(n);
  parallel_for(features.layers() * tiles, threads, [&](std::size_t task, unsigned) {
    const std::size_t layer = task / tiles;
    const Tile tile = tile_at(n, task % tiles);
    const RowMatrixD gram = gram_of(features.layer_matrices[layer], tile);
    for (std::size_t i = tile.first; i < tile.last; ++i) {
      const double* row = gram.row(static_cast<Eigen::Index>(i - tile.first)).data();
      grams.diagonals[layer][i] = row[i - tile.first];
      float* out = grams.pairs[layer].data() + pair_row(n, i);
      for (std::size_t j = i + 1; j < n; ++j) {
        *out++ = static_cast<float>(row[j - tile.first]);
      }
    }
  });
  return grams;
}

SummedGram summed_gram(const LayerFeatures& features, unsigned threads) {
  const std::size_t n = features.requests();
  SummedGram sums{std::vector<double>(pair_count(n), 0.0), std::vector<double>(n, 0.0)};
  // A tile of rows goes through the layers in order, so that the sum does not depend on the threads.
  parallel_for(tile_count(n), threads, [&](std::size_t task, unsigned) {
    const Tile tile = tile_at(n, task);
    for (const signature::RowMatrixF& matrix : features.layer_matrices) {
      const RowMatrixD gram = gram_of(matrix, tile);
      for (std::size_t i = tile.first; i < tile.last; ++i) {
        const double* row = gram.row(static_cast<Eigen::Index>(i - tile.first)).data();
        sums.diagonal[i] += row[i - tile.first];
        double* out = sums.pairs.data() + pair_row(n, i);
        for (std::size_t j = i + 1; j < n; ++j) {
          *out++ += row[j - tile.first];
        }
      }
    }
  });
  return sums;
}

}  // namespace eldr::calibrator::cpu

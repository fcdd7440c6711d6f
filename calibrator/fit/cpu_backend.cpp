// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "calibrator/fit/backend.h"
#include "calibrator/fit/pairs.h"
#include "calibrator/fit/parallel.h"
#include "calibrator/fit/ranks.h"

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;
using RowMatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::size_t kTileRows = 64;
/// Sums over pairs are exact up to here (ranks.h); about 65,000 requests.
constexpr std::size_t kMaxPairs = std::size_t{1} << 31U;

/// Rows [first, last) of the Gram matrix from column `first` on, in double: rounding is then below a float's
/// last bit, so equal requests give equal entries wherever a tile ends.
RowMatrixD gram_tile(const RowMatrixF& rows, Eigen::Index first, Eigen::Index last) {
  return rows.middleRows(first, last - first).cast<double>() *
         rows.bottomRows(rows.rows() - first).cast<double>().transpose();
}

/// Gram matrices of all layers: the strict upper triangles packed in pair order, the diagonals beside them.
struct PairGrams {
  std::size_t requests = 0;
  std::vector<std::vector<float>> pairs;       ///< [layer][pair]
  std::vector<std::vector<double>> diagonals;  ///< [layer][request]
};

PairGrams gram_pairs(const LayerFeatures& features, unsigned threads) {
  PairGrams grams;
  const std::size_t n = features.requests();
  grams.requests = n;
  grams.pairs.resize(features.layers());
  grams.diagonals.resize(features.layers());
  for (std::size_t layer = 0; layer < features.layers(); ++layer) {
    grams.pairs[layer].resize(pair_count(n));
    grams.diagonals[layer].resize(n);
  }
  const std::size_t tiles = (n + kTileRows - 1) / kTileRows;
  parallel_for(features.layers() * tiles, threads, [&](std::size_t task, unsigned) {
    const std::size_t layer = task / tiles;
    const std::size_t first = task % tiles * kTileRows;
    const std::size_t last = std::min(first + kTileRows, n);
    const RowMatrixD tile = gram_tile(features.layer_matrices[layer], static_cast<Eigen::Index>(first),
                                      static_cast<Eigen::Index>(last));
    for (std::size_t i = first; i < last; ++i) {
      const double* row = tile.row(static_cast<Eigen::Index>(i - first)).data();
      grams.diagonals[layer][i] = row[i - first];
      float* out = grams.pairs[layer].data() + pair_row(n, i);
      for (std::size_t j = i + 1; j < n; ++j) {
        *out++ = static_cast<float>(row[j - first]);
      }
    }
  });
  return grams;
}

/// 1 / length of each request, 0 for a zero vector.
std::vector<double> inverse_lengths(std::span<const double> squares) {
  std::vector<double> inverse(squares.size());
  std::transform(squares.begin(), squares.end(), inverse.begin(),
                 [](double square) { return square > 0 ? 1.0 / std::sqrt(square) : 0.0; });
  return inverse;
}

/// Calls body(pair, cosine) for each pair in order; `product(pair)` is the pair's inner product.
template <class Product, class Body>
void for_each_cosine(std::span<const double> inverse, Product product, Body body) {
  std::size_t pair = 0;
  for (std::size_t i = 0; i + 1 < inverse.size(); ++i) {
    const double own = inverse[i];
    for (std::size_t j = i + 1; j < inverse.size(); ++j, ++pair) {
      body(pair, product(pair) * own * inverse[j]);
    }
  }
}

/// The decode side, ranked once.
RankedTarget rank_decode_cosines(const LayerFeatures& decode, unsigned threads) {
  const std::size_t n = decode.requests();
  std::vector<double> sums(pair_count(n), 0.0);
  std::vector<double> squares(n, 0.0);
  const std::size_t tiles = (n + kTileRows - 1) / kTileRows;
  // A tile of rows goes through the layers in order, so that the sum does not depend on the threads.
  parallel_for(tiles, threads, [&](std::size_t task, unsigned) {
    const std::size_t first = task * kTileRows;
    const std::size_t last = std::min(first + kTileRows, n);
    for (const RowMatrixF& matrix : decode.layer_matrices) {
      const RowMatrixD tile =
          gram_tile(matrix, static_cast<Eigen::Index>(first), static_cast<Eigen::Index>(last));
      for (std::size_t i = first; i < last; ++i) {
        const double* row = tile.row(static_cast<Eigen::Index>(i - first)).data();
        squares[i] += row[i - first];
        double* out = sums.data() + pair_row(n, i);
        for (std::size_t j = i + 1; j < n; ++j) {
          *out++ += row[j - first];
        }
      }
    }
  });
  std::vector<std::uint32_t> keys(sums.size());
  for_each_cosine(
      inverse_lengths(squares), [&](std::size_t pair) { return sums[pair]; },
      [&](std::size_t pair, double cosine) { keys[pair] = cosine_key(cosine); });
  return SpearmanSorter().rank(keys);
}

class CpuLayerScorer final : public LayerScorer {
 public:
  CpuLayerScorer(PairGrams grams, RankedTarget target, unsigned threads)
      : grams_(std::move(grams)),
        target_(std::move(target)),
        threads_(std::max(threads, 1U)),
        sums_(pair_count(grams_.requests), 0.0),
        squares_(grams_.requests, 0.0),
        sorters_(threads_) {}

  Result<std::vector<double>> score(std::span<const std::size_t> candidates) override {
    std::vector<double> rhos(candidates.size());
    parallel_for(candidates.size(), threads_, [&](std::size_t task, unsigned worker) {
      rhos[task] = score_one(candidates[task], sorters_[worker]);
    });
    return rhos;
  }

  Status add(std::size_t layer) override {
    const std::vector<float>& pairs = grams_.pairs[layer];
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
      sums_[pair] += pairs[pair];
    }
    for (std::size_t i = 0; i < squares_.size(); ++i) {
      squares_[i] += grams_.diagonals[layer][i];
    }
    return {};
  }

 private:
  double score_one(std::size_t layer, SpearmanSorter& sorter) const {
    std::vector<double> squares = squares_;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      squares[i] += grams_.diagonals[layer][i];
    }
    const float* added = grams_.pairs[layer].data();
    const double* before = sums_.data();
    const std::uint32_t* ranks = target_.doubled_ranks.data();
    std::uint64_t* entries = sorter.begin(sums_.size());
    for_each_cosine(
        inverse_lengths(squares), [=](std::size_t pair) { return before[pair] + added[pair]; },
        [=](std::size_t pair, double cosine) {
          entries[pair] = SpearmanSorter::pack(cosine_key(cosine), ranks[pair]);
        });
    return sorter.rho(target_);
  }

  PairGrams grams_;
  RankedTarget target_;
  unsigned threads_;
  std::vector<double> sums_;     ///< inner products over the layers added, by pair
  std::vector<double> squares_;  ///< the same of each request with itself
  std::vector<SpearmanSorter> sorters_;
};

class CpuBackend final : public FitBackend {
 public:
  explicit CpuBackend(unsigned threads) : threads_(std::max(threads, 1U)) {}
  std::string_view name() const override { return "cpu"; }

  Result<std::unique_ptr<LayerScorer>> layer_scorer(const LayerFeatures& prefill,
                                                    const LayerFeatures& decode) override {
    const std::size_t n = prefill.requests();
    if (n < 2 || decode.requests() != n) {
      return failure(Code::kInvalid, "a correlation over pairs needs at least 2 requests; there are " +
                                         std::to_string(std::min(n, decode.requests())));
    }
    if (pair_count(n) >= kMaxPairs) {
      return failure(Code::kResourceExhausted, std::to_string(n) + " requests are " +
                                                   std::to_string(pair_count(n)) + " pairs; fewer than " +
                                                   std::to_string(kMaxPairs) + " are allowed");
    }
    return std::make_unique<CpuLayerScorer>(gram_pairs(prefill, threads_),
                                            rank_decode_cosines(decode, threads_), threads_);
  }

  Result<RowMatrixF> gram(const RowMatrixF& rows) override {
    const auto n = static_cast<std::size_t>(rows.rows());
    RowMatrixF full(n, n);
    const std::size_t tiles = (n + kTileRows - 1) / kTileRows;
    parallel_for(tiles, threads_, [&](std::size_t task, unsigned) {
      const std::size_t first = task * kTileRows;
      const std::size_t last = std::min(first + kTileRows, n);
      const RowMatrixD tile =
          gram_tile(rows, static_cast<Eigen::Index>(first), static_cast<Eigen::Index>(last));
      for (std::size_t i = first; i < last; ++i) {
        for (std::size_t j = i; j < n; ++j) {
          const auto value = static_cast<float>(
              tile(static_cast<Eigen::Index>(i - first), static_cast<Eigen::Index>(j - first)));
          full(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = value;
          full(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i)) = value;
        }
      }
    });
    return full;
  }

 private:
  unsigned threads_;
};

}  // namespace

std::unique_ptr<FitBackend> make_cpu_backend(unsigned threads) {
  return std::make_unique<CpuBackend>(threads);
}

}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/cpu/layer_scorer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "calibrator/fit/cpu/pair_grams.h"
#include "calibrator/fit/cpu/rho_bounds.h"
#include "calibrator/fit/inverse_lengths.h"
#include "calibrator/fit/pairs.h"
#include "calibrator/fit/parallel.h"
#include "calibrator/fit/ranks.h"

namespace eldr::calibrator::cpu {
namespace {

/// Keys of the pairs (i, i + 1), (i, i + 2) … from their inner products, in two parts that add up.
template <class Product>
void row_keys(std::size_t count, double inverse, const double* inverses, Product product,
              std::uint32_t* keys) {
  for (std::size_t k = 0; k < count; ++k) {
    keys[k] = cosine_key(product(k) * inverse * inverses[k]);
  }
}

/// The decode side, ranked once.
RankedTarget rank_decode_cosines(const LayerFeatures& decode, unsigned threads) {
  const SummedGram gram = summed_gram(decode, threads);
  const std::vector<double> inverse = inverse_lengths(gram.diagonal);
  const std::size_t n = inverse.size();
  std::vector<std::uint32_t> keys(gram.pairs.size());
  for (std::size_t i = 0; i + 1 < n; ++i) {
    const double* products = gram.pairs.data() + pair_row(n, i);
    row_keys(
        n - i - 1, inverse[i], inverse.data() + i + 1, [=](std::size_t k) { return products[k]; },
        keys.data() + pair_row(n, i));
  }
  return SpearmanSorter().rank(keys);
}

/// Scratch memory of a thread.
struct Workspace {
  SpearmanSorter sorter;
  BucketedRanks buckets;
  std::vector<std::uint32_t> keys;  ///< of one row
};

class CpuLayerScorer final : public LayerScorer {
 public:
  CpuLayerScorer(PairGrams grams, RankedTarget target, unsigned threads)
      : grams_(std::move(grams)),
        target_(std::move(target)),
        threads_(std::max(threads, 1U)),
        sums_(pair_count(grams_.requests), 0.0),
        squares_(grams_.requests, 0.0),
        workspaces_(threads_) {
    for (Workspace& workspace : workspaces_) {
      workspace.keys.resize(grams_.requests);
    }
  }

  Result<std::vector<double>> score(std::span<const std::size_t> candidates) override {
    std::vector<double> rhos(candidates.size());
    parallel_for(candidates.size(), threads_, [&](std::size_t task, unsigned worker) {
      rhos[task] = exact_rho(candidates[task], workspaces_[worker]);
    });
    return rhos;
  }

  /// Sorts the pairs of those candidates alone that bounds on rho leave in the race.
  Result<Choice> best(std::span<const std::size_t> candidates) override {
    if (candidates.size() == 1) {
      return LayerScorer::best(candidates);
    }
    std::vector<RhoBounds> bounds(candidates.size());
    parallel_for(candidates.size(), threads_, [&](std::size_t task, unsigned worker) {
      bounds[task] = bounds_of(candidates[task], workspaces_[worker]);
    });
    const double reached =
        std::max_element(bounds.begin(), bounds.end(), [](const RhoBounds& a, const RhoBounds& b) {
          return a.lower < b.lower;
        })->lower;
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (bounds[i].upper >= reached) {
        left.push_back(candidates[i]);
      }
    }
    return LayerScorer::best(left);
  }

  Status add(std::size_t layer) override {
    const std::vector<float>& pairs = grams_.pairs[layer];
    for (std::size_t pair = 0; pair < pairs.size(); ++pair) {
      sums_[pair] += pairs[pair];
    }
    squares_ = squares_with(layer);
    return {};
  }

 private:
  std::vector<double> squares_with(std::size_t layer) const {
    std::vector<double> squares = squares_;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      squares[i] += grams_.diagonals[layer][i];
    }
    return squares;
  }

  /// Keys of the pairs (i, j), j > i, with the layer added, into the workspace.
  std::span<const std::uint32_t> keys_of_row(std::size_t layer, std::size_t i,
                                             const std::vector<double>& inverse, Workspace& workspace) const {
    const std::size_t n = inverse.size();
    const double* before = sums_.data() + pair_row(n, i);
    const float* added = grams_.pairs[layer].data() + pair_row(n, i);
    row_keys(
        n - i - 1, inverse[i], inverse.data() + i + 1, [=](std::size_t k) { return before[k] + added[k]; },
        workspace.keys.data());
    return std::span(workspace.keys).first(n - i - 1);
  }

  RhoBounds bounds_of(std::size_t layer, Workspace& workspace) const {
    const std::vector<double> inverse = inverse_lengths(squares_with(layer));
    const std::size_t n = inverse.size();
    const auto [lowest, highest] = sampled_key_range(layer, inverse, workspace);
    workspace.buckets.begin(sums_.size(), lowest, highest);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      workspace.buckets.add(keys_of_row(layer, i, inverse, workspace),
                            target_.doubled_ranks.data() + pair_row(n, i));
    }
    return workspace.buckets.bounds(target_);
  }

  /// Where nearly all keys lie, from some of the rows. Bounds are right with any range, and narrow with a
  /// good one.
  std::pair<std::uint32_t, std::uint32_t> sampled_key_range(std::size_t layer,
                                                            const std::vector<double>& inverse,
                                                            Workspace& workspace) const {
    constexpr std::size_t kRows = 16;
    const std::size_t stride = std::max<std::size_t>(1, inverse.size() / kRows);
    std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t highest = 0;
    for (std::size_t i = 0; i + 1 < inverse.size(); i += stride) {
      for (const std::uint32_t key : keys_of_row(layer, i, inverse, workspace)) {
        lowest = std::min(lowest, key);
        highest = std::max(highest, key);
      }
    }
    return {lowest, highest};
  }

  double exact_rho(std::size_t layer, Workspace& workspace) const {
    const std::vector<double> inverse = inverse_lengths(squares_with(layer));
    const std::size_t n = inverse.size();
    std::uint64_t* entries = workspace.sorter.begin(sums_.size());
    const std::uint32_t* ranks = target_.doubled_ranks.data();
    for (std::size_t i = 0; i + 1 < n; ++i) {
      for (const std::uint32_t key : keys_of_row(layer, i, inverse, workspace)) {
        *entries++ = SpearmanSorter::pack(key, *ranks++);
      }
    }
    return workspace.sorter.rho(target_);
  }

  PairGrams grams_;
  RankedTarget target_;
  unsigned threads_;
  std::vector<double> sums_;     ///< inner products over the layers added, by pair
  std::vector<double> squares_;  ///< the same of each request with itself
  std::vector<Workspace> workspaces_;
};

}  // namespace

std::unique_ptr<LayerScorer> make_layer_scorer(const LayerFeatures& prefill, const LayerFeatures& decode,
                                               unsigned threads) {
  return std::make_unique<CpuLayerScorer>(gram_pairs(prefill, threads), rank_decode_cosines(decode, threads),
                                          threads);
}

}  // namespace eldr::calibrator::cpu

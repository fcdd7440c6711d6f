// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/cpu/layer_scorer.h"

#include <algorithm>

#include "calibrator/fit/cpu/pair_grams.h"
#include "calibrator/fit/pairs.h"
#include "calibrator/fit/parallel.h"
#include "calibrator/fit/ranks.h"

namespace eldr::calibrator::cpu {
namespace {

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
  const SummedGram gram = summed_gram(decode, threads);
  std::vector<std::uint32_t> keys(gram.pairs.size());
  for_each_cosine(
      inverse_lengths(gram.diagonal), [&](std::size_t pair) { return gram.pairs[pair]; },
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

}  // namespace

std::unique_ptr<LayerScorer> make_layer_scorer(const LayerFeatures& prefill, const LayerFeatures& decode,
                                               unsigned threads) {
  return std::make_unique<CpuLayerScorer>(gram_pairs(prefill, threads), rank_decode_cosines(decode, threads),
                                          threads);
}

}  // namespace eldr::calibrator::cpu

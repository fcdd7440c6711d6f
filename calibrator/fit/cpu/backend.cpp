// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/backend.h"

#include <algorithm>
#include <string>

#include "calibrator/fit/cpu/layer_scorer.h"
#include "calibrator/fit/cpu/similarity_matrix.h"
#include "calibrator/fit/pairs.h"

namespace eldr::calibrator {
namespace {

/// Sums over pairs are exact up to here (ranks.h); about 65,000 requests.
constexpr std::size_t kMaxPairs = std::size_t{1} << 31U;

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
    return cpu::make_layer_scorer(prefill, decode, threads_);
  }

  Result<std::unique_ptr<SimilarityMatrix>> similarities(const signature::RowMatrixF& rows) override {
    return cpu::make_similarity_matrix(rows, threads_);
  }

 private:
  unsigned threads_;
};

}  // namespace

std::unique_ptr<FitBackend> make_cpu_backend(unsigned threads) {
  return std::make_unique<CpuBackend>(threads);
}

}  // namespace eldr::calibrator

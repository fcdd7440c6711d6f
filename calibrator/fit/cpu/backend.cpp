// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/backend.h"

#include <algorithm>

#include "calibrator/fit/check_pairs.h"
#include "calibrator/fit/cpu/layer_scorer.h"
#include "calibrator/fit/cpu/similarity_matrix.h"

namespace eldr::calibrator {
namespace {

class CpuBackend final : public FitBackend {
 public:
  explicit CpuBackend(unsigned threads) : threads_(std::max(threads, 1U)) {}
  std::string_view name() const override { return "cpu"; }

  Result<std::unique_ptr<LayerScorer>> layer_scorer(const LayerFeatures& prefill,
                                                    const LayerFeatures& decode) override {
    if (const Status good = check_pairs(prefill, decode); !good) {
      return failure(good.error());
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

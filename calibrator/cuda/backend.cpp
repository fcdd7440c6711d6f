// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "calibrator/cuda/layer_scorer.h"
#include "calibrator/cuda/memory_plan.h"
#include "calibrator/cuda/session.h"
#include "calibrator/cuda/similarity_matrix.h"
#include "calibrator/fit/check_pairs.h"
#include "calibrator/fit/pairs.h"

namespace eldr::calibrator::cuda {
namespace {

class CudaBackend final : public FitBackend {
 public:
  explicit CudaBackend(std::shared_ptr<Session> session) : session_(std::move(session)) {}

  std::string_view name() const override { return "cuda"; }

  Result<std::unique_ptr<LayerScorer>> layer_scorer(const LayerFeatures& prefill,
                                                    const LayerFeatures& decode) override {
    if (const Status good = check_pairs(prefill, decode); !good) {
      return failure(good.error());
    }
    return make_layer_scorer(session_, prefill, decode);
  }

  Result<std::unique_ptr<SimilarityMatrix>> similarities(const signature::RowMatrixF& rows) override {
    return make_similarity_matrix(session_, rows);
  }

 private:
  std::shared_ptr<Session> session_;
};

/// The rest is for the libraries' own memory and for others on the GPU.
constexpr double kShareOfFree = 0.8;

Status check_memory(Session& session, const FitShape& shape) {
  if (shape.requests < 2) {
    return {};  // the fit itself says so
  }
  std::size_t scratch = 0;
  if (const Status known = to_status(session.device().scratch_bytes(pair_count(shape.requests), scratch));
      !known) {
    return known;
  }
  const auto scorer =
      plan_scorer({shape.requests, shape.layers, shape.experts}, scratch, session.available());
  if (!scorer) {
    return failure(scorer.error());
  }
  const auto similarities =
      plan_similarities(shape.requests, shape.layers * shape.experts, session.available());
  return similarities ? Status() : failure(similarities.error());
}

}  // namespace

Result<std::unique_ptr<FitBackend>> make_backend(std::unique_ptr<Device> device, std::uint64_t memory_limit,
                                                 const FitShape& shape) {
  DeviceFacts facts;
  if (const Status known = to_status(device->facts(facts)); !known) {
    return failure(known.error());
  }
  if (memory_limit == 0) {
    memory_limit = static_cast<std::uint64_t>(kShareOfFree * static_cast<double>(facts.free_bytes));
  }
  auto session = std::make_shared<Session>(std::move(device), std::min(memory_limit, facts.free_bytes));
  if (const Status fits = check_memory(*session, shape); !fits) {
    return failure(fits.error());
  }
  return std::make_unique<CudaBackend>(std::move(session));
}

}  // namespace eldr::calibrator::cuda

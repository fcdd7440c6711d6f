// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/layer_scorer.h"

#include <utility>

#include "calibrator/cuda/gram_tiles.h"
#include "calibrator/cuda/memory_plan.h"
#include "calibrator/fit/inverse_lengths.h"
#include "calibrator/fit/pairs.h"
#include "calibrator/fit/rank_sums.h"

namespace eldr::calibrator::cuda {
namespace {

using signature::RowMatrixF;

/// Runs calls of the device in order until one fails.
class Calls {
 public:
  template <class Call>
  Calls& then(Call call) {
    if (status_) {
      status_ = to_status(call());
    }
    return *this;
  }
  Status status() const { return status_; }

 private:
  Status status_;
};

class CudaLayerScorer final : public LayerScorer {
 public:
  CudaLayerScorer(std::shared_ptr<Session> session, DeviceBlock memory, const ScorerPlan& plan,
                  const ScorerShape& shape, std::size_t scratch_bytes)
      : session_(std::move(session)),
        memory_(std::move(memory)),
        plan_(plan),
        shape_(shape),
        pairs_(pair_count(shape.requests)),
        scratch_bytes_(scratch_bytes),
        squares_(shape.requests, 0.0),
        diagonals_(shape.layers, std::vector<double>(shape.requests)),
        buffers_{at<std::uint32_t>(plan.sort[0]), at<std::uint32_t>(plan.sort[1]),
                 at<std::uint32_t>(plan.sort[2]), at<std::uint32_t>(plan.sort[3])} {}

  /// Once, before anything else; the session is locked.
  Status load(const LayerFeatures& prefill, const LayerFeatures& decode) {
    if (const Status ranked = rank_decode_side(decode); !ranked) {
      return ranked;
    }
    for (std::size_t layer = 0; layer < prefill.layers(); ++layer) {
      if (const Status loaded = load_layer(layer, prefill.layer_matrices[layer]); !loaded) {
        return loaded;
      }
    }
    return to_status(device().clear(at<void>(plan_.sums), pairs_ * sizeof(double)));
  }

  Result<std::vector<double>> score(std::span<const std::size_t> candidates) override {
    const auto lock = session_->lock();
    std::vector<double> rhos;
    rhos.reserve(candidates.size());
    for (const std::size_t layer : candidates) {
      const auto rho = score_one(layer);
      if (!rho) {
        return failure(rho.error());
      }
      rhos.push_back(*rho);
    }
    return rhos;
  }

  Status add(std::size_t layer) override {
    const auto lock = session_->lock();
    const auto products = layer_products(layer);
    if (!products) {
      return failure(products.error());
    }
    squares_ = squares_with(layer);
    return to_status(device().for_each(AddLayer{*products, at<double>(plan_.sums)}, pairs_));
  }

 private:
  Device& device() const { return session_->device(); }
  template <class T>
  T* at(std::uint64_t offset) const {
    return memory_.at<T>(offset);
  }

  /// Sums the decode layers' products, and keeps nothing of them but the ranks of their cosines.
  Status rank_decode_side(const LayerFeatures& decode) {
    auto* sums = at<double>(plan_.sums);
    auto* diagonal = at<double>(plan_.diagonal);
    Calls calls;
    calls.then([&] { return device().clear(sums, pairs_ * sizeof(double)); }).then([&] {
      return device().clear(diagonal, shape_.requests * sizeof(double));
    });
    if (!calls.status()) {
      return calls.status();
    }
    for (const RowMatrixF& matrix : decode.layer_matrices) {
      if (const Status uploaded = upload_rows(matrix, at<float>(plan_.upload)); !uploaded) {
        return uploaded;
      }
      const Status added = for_each_tile(at<float>(plan_.upload), [&](const GramBlock& block) {
        return to_status(device().for_each(
            AddBlock{at<double>(plan_.tile), block, shape_.requests, sums, diagonal}, block.size()));
      });
      if (!added) {
        return added;
      }
    }
    std::vector<double> squares(shape_.requests);
    if (const Status got = download_diagonal(squares); !got) {
      return got;
    }
    if (const Status sent = upload_inverse_lengths(squares); !sent) {
      return sent;
    }
    RankSums own{};
    calls
        .then([&] {
          return device().for_each(
              TargetKeys{sums, at<double>(plan_.inverse), shape_.requests, buffers_.keys, buffers_.payload},
              pairs_);
        })
        .then([&] { return sort(); })
        .then([&] { return sum(own); })
        .then([&] {
          return device().for_each(
              ScatterRanks{buffers_.keys, buffers_.payload, pairs_, at<std::uint32_t>(plan_.ranks)}, pairs_);
        });
    target_squares_ = about_the_mean(own.squares, pairs_);
    return calls.status();
  }

  /// Its products where they are kept, else its features; its diagonal in any case.
  Status load_layer(std::size_t layer, const RowMatrixF& matrix) {
    const bool kept = layer < plan_.kept_layers;
    float* features = kept ? at<float>(plan_.upload) : features_of(layer);
    if (const Status uploaded = upload_rows(matrix, features); !uploaded) {
      return uploaded;
    }
    if (const Status packed = pack(features, kept ? kept_products(layer) : at<float>(plan_.shared));
        !packed) {
      return packed;
    }
    return download_diagonal(diagonals_[layer]);
  }

  Result<double> score_one(std::size_t layer) {
    const auto products = layer_products(layer);
    if (!products) {
      return failure(products.error());
    }
    if (const Status sent = upload_inverse_lengths(squares_with(layer)); !sent) {
      return failure(sent.error());
    }
    RankSums sums{};
    const Status status =
        Calls()
            .then([&] {
              return device().for_each(
                  ScoreKeys{at<double>(plan_.sums), *products, at<double>(plan_.inverse),
                            at<std::uint32_t>(plan_.ranks), shape_.requests, buffers_.keys, buffers_.payload},
                  pairs_);
            })
            .then([&] { return sort(); })
            .then([&] { return sum(sums); })
            .status();
    if (!status) {
      return failure(status.error());
    }
    return spearman_rho(sums, pairs_, target_squares_);
  }

  /// The layer's packed inner products, computed again where they are not kept.
  Result<const float*> layer_products(std::size_t layer) {
    if (layer < plan_.kept_layers) {
      return kept_products(layer);
    }
    if (const Status packed = pack(features_of(layer), at<float>(plan_.shared)); !packed) {
      return failure(packed.error());
    }
    return at<float>(plan_.shared);
  }

  float* kept_products(std::size_t layer) const {
    return at<float>(plan_.kept + layer * plan_.layer_pairs_bytes);
  }
  float* features_of(std::size_t layer) const {
    return at<float>(plan_.features + (layer - plan_.kept_layers) * plan_.layer_features_bytes);
  }

  Status pack(const float* features, float* products) {
    return for_each_tile(features, [&](const GramBlock& block) {
      return to_status(device().for_each(
          PackLayer{at<double>(plan_.tile), block, shape_.requests, products, at<double>(plan_.diagonal)},
          block.size()));
    });
  }

  /// Tiles of the upper triangle of a layer's Gram matrix.
  template <class Use>
  Status for_each_tile(const float* features, Use use) {
    auto* rows = at<double>(plan_.rows);
    const Status widened =
        to_status(device().for_each(Widen{features, rows}, shape_.requests * shape_.columns));
    if (!widened) {
      return widened;
    }
    return for_each_gram_tile(device(), rows, shape_.requests, shape_.columns, plan_.tile_rows,
                              at<double>(plan_.tile), true, use);
  }

  Status upload_rows(const RowMatrixF& matrix, float* to) {
    return to_status(device().upload(to, matrix.data(), shape_.requests * shape_.columns * sizeof(float)));
  }
  Status download_diagonal(std::vector<double>& out) {
    return to_status(device().download(out.data(), at<double>(plan_.diagonal), out.size() * sizeof(double)));
  }

  Status upload_inverse_lengths(const std::vector<double>& squares) {
    const std::vector<double> inverse = inverse_lengths(squares);
    return to_status(
        device().upload(at<double>(plan_.inverse), inverse.data(), inverse.size() * sizeof(double)));
  }
  std::vector<double> squares_with(std::size_t layer) const {
    std::vector<double> squares = squares_;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      squares[i] += diagonals_[layer][i];
    }
    return squares;
  }

  DeviceError sort() { return device().sort(buffers_, pairs_, at<void>(plan_.scratch), scratch_bytes_); }
  DeviceError sum(RankSums& out) {
    return device().sum(PlaceSums{buffers_.keys, buffers_.payload, pairs_}, pairs_, at<void>(plan_.scratch),
                        scratch_bytes_, out);
  }

  std::shared_ptr<Session> session_;
  DeviceBlock memory_;
  ScorerPlan plan_;
  ScorerShape shape_;
  std::uint64_t pairs_;
  std::size_t scratch_bytes_;
  std::vector<double> squares_;                 ///< squared lengths over the layers added
  std::vector<std::vector<double>> diagonals_;  ///< [layer][request]
  SortBuffers buffers_;
  double target_squares_ = 0;
};

}  // namespace

Result<std::unique_ptr<LayerScorer>> make_layer_scorer(std::shared_ptr<Session> session,
                                                       const LayerFeatures& prefill,
                                                       const LayerFeatures& decode) {
  const auto lock = session->lock();
  const ScorerShape shape{prefill.requests(), prefill.layers(),
                          static_cast<std::uint64_t>(prefill.layer_matrices.front().cols())};
  std::size_t scratch_bytes = 0;
  const Status known = to_status(session->device().scratch_bytes(pair_count(shape.requests), scratch_bytes));
  if (!known) {
    return failure(known.error());
  }
  const auto plan = plan_scorer(shape, scratch_bytes, session->available());
  if (!plan) {
    return failure(plan.error());
  }
  auto memory = DeviceBlock::take(session, plan->bytes);
  if (!memory) {
    return failure(memory.error());
  }
  auto scorer = std::make_unique<CudaLayerScorer>(session, std::move(*memory), *plan, shape, scratch_bytes);
  if (const Status loaded = scorer->load(prefill, decode); !loaded) {
    return failure(loaded.error());
  }
  return scorer;
}

}  // namespace eldr::calibrator::cuda

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/similarity_matrix.h"

#include <algorithm>
#include <string>
#include <utility>

#include "calibrator/cuda/gram_tiles.h"
#include "calibrator/cuda/memory_plan.h"

namespace eldr::calibrator::cuda {
namespace {

using signature::RowMatrixF;

/// Rows [first, first + height) of the Gram matrix, each [N].
struct GramRows {
  std::uint64_t first;
  std::uint64_t height;
  const float* values;
};

class CudaSimilarityMatrix final : public SimilarityMatrix {
 public:
  CudaSimilarityMatrix(std::shared_ptr<Session> session, const SimilarityPlan& plan, const RowMatrixF& rows)
      : session_(std::move(session)),
        plan_(plan),
        requests_(static_cast<std::uint64_t>(rows.rows())),
        columns_(static_cast<std::uint64_t>(rows.cols())),
        has_direction_(requests_) {
    for (std::uint64_t i = 0; i < requests_; ++i) {
      has_direction_[i] = rows.row(static_cast<Eigen::Index>(i)).any();
    }
  }

  /// Once, before anything else; the session is locked.
  Status load(const RowMatrixF& rows) {
    auto work = DeviceBlock::take(session_, plan_.work_bytes);
    if (!work) {
      return failure(work.error());
    }
    work_ = std::move(*work);
    if (const Status widened = upload_widened(rows); !widened || !plan_.kept) {
      return widened;
    }
    auto gram = DeviceBlock::take(session_, plan_.gram_bytes);
    if (!gram) {
      return failure(gram.error());
    }
    gram_ = std::move(*gram);
    const Status computed = for_each_tile([&](const GramBlock& block) {
      return narrow(block, gram_.at<float>(block.row * requests_ * sizeof(float)));
    });
    work_ = DeviceBlock();
    return computed;
  }

  std::size_t requests() const override { return requests_; }

  bool has_direction(std::size_t request) const override { return has_direction_[request]; }

  Status row(std::size_t request, std::span<float> out) const override {
    const auto lock = session_->lock();
    const float* values = nullptr;
    if (plan_.kept) {
      values = gram_.at<float>(request * requests_ * sizeof(float));
    } else {
      const GramBlock block{request, 1, 0, requests_};
      Status computed = to_status(
          device().gram(work_.at<double>(plan_.rows), columns_, block, work_.at<double>(plan_.tile)));
      if (computed) {
        computed = narrow(block, work_.at<float>(plan_.narrow));
      }
      if (!computed) {
        return computed;
      }
      values = work_.at<float>(plan_.narrow);
    }
    return to_status(device().download(out.data(), values, requests_ * sizeof(float)));
  }

 private:
  Device& device() const { return session_->device(); }

  /// As many rows at a time as the tile's memory holds as floats.
  Status upload_widened(const RowMatrixF& rows) const {
    const std::uint64_t room = plan_.tile_rows * requests_ * sizeof(double) / sizeof(float);
    const std::uint64_t values = requests_ * columns_;
    for (std::uint64_t first = 0; first < values; first += room) {
      const std::uint64_t count = std::min(room, values - first);
      auto* staged = work_.at<float>(plan_.tile);
      Status done = to_status(device().upload(staged, rows.data() + first, count * sizeof(float)));
      if (done) {
        done = to_status(device().for_each(Widen{staged, work_.at<double>(plan_.rows) + first}, count));
      }
      if (!done) {
        return done;
      }
    }
    return {};
  }

  template <class Use>
  Status for_each_tile(Use use) const {
    return for_each_gram_tile(device(), work_.at<double>(plan_.rows), requests_, columns_, plan_.tile_rows,
                              work_.at<double>(plan_.tile), false, use);
  }

  Status narrow(const GramBlock& block, float* to) const {
    return to_status(device().for_each(Narrow{work_.at<double>(plan_.tile), to}, block.size()));
  }

  /// Calls use(GramRows), a Status, for all rows from the top: at once where they are kept.
  template <class Use>
  Status for_each_rows(Use use) const {
    if (plan_.kept) {
      return use(GramRows{0, requests_, gram_.at<float>(0)});
    }
    return for_each_tile([&](const GramBlock& block) {
      auto* values = work_.at<float>(plan_.narrow);
      const Status narrowed = narrow(block, values);
      return narrowed ? use(GramRows{block.row, block.height, values}) : narrowed;
    });
  }

  Result<Eigen::MatrixXd> products_with_sums(std::span<const std::uint32_t> cluster_of,
                                             std::uint32_t clusters) const override {
    const Members members = members_of(cluster_of, clusters);
    Layout layout;
    const std::uint64_t sums = layout.add(requests_ * clusters, sizeof(double));
    const std::uint64_t list = layout.add(requests_, sizeof(std::uint32_t));
    const std::uint64_t begins = layout.add(clusters + std::uint64_t{1}, sizeof(std::uint32_t));

    const auto lock = session_->lock();
    const auto memory = DeviceBlock::take(session_, layout.bytes());
    if (!memory) {
      return failure(memory.error());
    }
    auto* device_sums = memory->at<double>(sums);
    auto* device_list = memory->at<std::uint32_t>(list);
    auto* device_begins = memory->at<std::uint32_t>(begins);
    Eigen::MatrixXd common(requests_, clusters);  // by columns: the same order as [K][N]
    const std::size_t bytes = requests_ * clusters * sizeof(double);

    Status done = to_status(device().clear(device_sums, bytes));
    if (done) {
      done = upload(members.list, device_list);
    }
    if (done) {
      done = upload(members.begins, device_begins);
    }
    if (done) {
      done = for_each_rows([&](const GramRows& rows) {
        return to_status(device().for_each(ClusterSums{rows.values, rows.first, rows.first + rows.height,
                                                       requests_, device_list, device_begins, device_sums},
                                           requests_ * clusters));
      });
    }
    if (done) {
      done = to_status(device().download(common.data(), device_sums, bytes));
    }
    if (!done) {
      return failure(done.error());
    }
    return common;
  }

  /// Requests by cluster, ascending in each; begins is [K + 1].
  struct Members {
    std::vector<std::uint32_t> list;
    std::vector<std::uint32_t> begins;
  };
  static Members members_of(std::span<const std::uint32_t> cluster_of, std::uint32_t clusters) {
    Members members;
    members.begins.assign(clusters + std::size_t{1}, 0);
    for (const std::uint32_t cluster : cluster_of) {
      if (cluster != kNoCluster) {
        ++members.begins[cluster + std::size_t{1}];
      }
    }
    for (std::size_t k = 0; k < clusters; ++k) {
      members.begins[k + 1] += members.begins[k];
    }
    members.list.resize(members.begins.back());
    std::vector<std::uint32_t> next(members.begins);
    for (std::size_t i = 0; i < cluster_of.size(); ++i) {
      if (cluster_of[i] != kNoCluster) {
        members.list[next[cluster_of[i]]++] = static_cast<std::uint32_t>(i);
      }
    }
    return members;
  }

  Status upload(const std::vector<std::uint32_t>& values, std::uint32_t* to) const {
    return to_status(device().upload(to, values.data(), values.size() * sizeof(std::uint32_t)));
  }

  std::shared_ptr<Session> session_;
  SimilarityPlan plan_;
  std::uint64_t requests_;
  std::uint64_t columns_;
  std::vector<bool> has_direction_;
  DeviceBlock work_;  ///< rows and tiles, where the matrix is not kept
  DeviceBlock gram_;  ///< the matrix, where it is
};

}  // namespace

Result<std::unique_ptr<SimilarityMatrix>> make_similarity_matrix(std::shared_ptr<Session> session,
                                                                 const RowMatrixF& rows) {
  const auto lock = session->lock();
  const auto plan = plan_similarities(static_cast<std::uint64_t>(rows.rows()),
                                      static_cast<std::uint64_t>(rows.cols()), session->available());
  if (!plan) {
    return failure(plan.error());
  }
  auto matrix = std::make_unique<CudaSimilarityMatrix>(session, *plan, rows);
  if (const Status loaded = matrix->load(rows); !loaded) {
    return failure(loaded.error());
  }
  return matrix;
}

}  // namespace eldr::calibrator::cuda

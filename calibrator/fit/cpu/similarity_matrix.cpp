// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/cpu/similarity_matrix.h"

#include "calibrator/fit/cpu/gram_tile.h"

namespace eldr::calibrator::cpu {
namespace {

using signature::RowMatrixF;

/// rows * rows^T, symmetric to the last bit.
RowMatrixF full_gram(const RowMatrixF& rows, unsigned threads) {
  const auto n = static_cast<std::size_t>(rows.rows());
  RowMatrixF full(n, n);
  parallel_for(tile_count(n), threads, [&](std::size_t task, unsigned) {
    const Tile tile = tile_at(n, task);
    const RowMatrixD part = gram_of(rows, tile);
    for (std::size_t i = tile.first; i < tile.last; ++i) {
      for (std::size_t j = i; j < n; ++j) {
        const auto value = static_cast<float>(
            part(static_cast<Eigen::Index>(i - tile.first), static_cast<Eigen::Index>(j - tile.first)));
        full(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = value;
        full(static_cast<Eigen::Index>(j), static_cast<Eigen::Index>(i)) = value;
      }
    }
  });
  return full;
}

class CpuSimilarityMatrix final : public SimilarityMatrix {
 public:
  explicit CpuSimilarityMatrix(RowMatrixF gram) : gram_(std::move(gram)) {}

  std::size_t requests() const override { return static_cast<std::size_t>(gram_.rows()); }

  bool has_direction(std::size_t request) const override {
    const auto i = static_cast<Eigen::Index>(request);
    return gram_(i, i) > 0;
  }

  Status row(std::size_t request, std::span<float> out) const override {
    const auto row = gram_.row(static_cast<Eigen::Index>(request));
    std::copy(row.data(), row.data() + row.size(), out.begin());
    return {};
  }

 private:
  /// The sums of a block of columns stay in the second-level cache while the members' rows go by.
  static constexpr Eigen::Index kBlock = 512;

  Result<Eigen::MatrixXd> products_with_sums(std::span<const std::uint32_t> cluster_of,
                                             std::uint32_t clusters) const override {
    const Eigen::Index n = gram_.rows();
    Eigen::MatrixXd common = Eigen::MatrixXd::Zero(n, clusters);
    for (Eigen::Index first = 0; first < n; first += kBlock) {
      const Eigen::Index width = std::min(kBlock, n - first);
      for (Eigen::Index j = 0; j < n; ++j) {
        const std::uint32_t cluster = cluster_of[static_cast<std::size_t>(j)];
        if (cluster != kNoCluster) {
          common.col(cluster).segment(first, width) +=
              gram_.row(j).segment(first, width).transpose().cast<double>();
        }
      }
    }
    return common;
  }

  RowMatrixF gram_;
};

}  // namespace

std::unique_ptr<SimilarityMatrix> make_similarity_matrix(const RowMatrixF& rows, unsigned threads) {
  return std::make_unique<CpuSimilarityMatrix>(full_gram(rows, threads));
}

}  // namespace eldr::calibrator::cpu

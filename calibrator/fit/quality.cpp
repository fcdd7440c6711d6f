// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/quality.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <spdlog/fmt/fmt.h>

namespace eldr::calibrator {
namespace {

constexpr std::size_t kFewRequests = 200;
constexpr std::size_t kFewRequestsPerCluster = 10;
constexpr std::uint32_t kShortDecode = 16;
constexpr double kSmallLabelGap = 0.02;
constexpr double kOverfit = 0.1;
constexpr double kGivenUp = 0.05;  ///< rho that a limit on the layers costs
constexpr double kCrowded = 2.0;   ///< times the even share

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// The sum of the cosines of all pairs of a group of unit vectors.
class PairSum {
 public:
  explicit PairSum(Eigen::Index dimension) : sum_(Eigen::RowVectorXd::Zero(dimension)) {}
  void add(const Eigen::Ref<const Eigen::RowVectorXf>& row) {
    const Eigen::RowVectorXd wide = row.cast<double>();
    sum_ += wide;
    squares_ += wide.squaredNorm();
    ++count_;
  }
  double cosines() const { return (sum_.squaredNorm() - squares_) / 2; }
  double pairs() const { return count_ * (count_ - 1) / 2; }

 private:
  Eigen::RowVectorXd sum_;
  double squares_ = 0;
  double count_ = 0;
};

}  // namespace

SimilarityStatistics similarity_statistics(const signature::RowMatrixF& signatures,
                                           const signature::RowMatrixF& centroids) {
  SimilarityStatistics statistics;
  std::vector<double> best;
  std::vector<std::size_t> nearest(static_cast<std::size_t>(centroids.rows()), 0);
  double spread = 0;
  for (Eigen::Index i = 0; i < signatures.rows(); ++i) {
    if (signatures.row(i).squaredNorm() == 0) {
      ++statistics.directionless;
      continue;
    }
    const Eigen::VectorXf similarity = centroids * signatures.row(i).transpose();
    Eigen::Index cluster = 0;
    const double highest = similarity.maxCoeff(&cluster);
    spread += highest - static_cast<double>(similarity.mean());
    best.push_back(highest);
    ++nearest[static_cast<std::size_t>(cluster)];
  }
  if (best.empty()) {
    return statistics;
  }
  std::sort(best.begin(), best.end());
  const auto count = static_cast<double>(best.size());
  statistics.spread = spread / count;
  statistics.nearest_share = static_cast<double>(*std::max_element(nearest.begin(), nearest.end())) / count;
  statistics.best_quantiles = {{"p01", quantile(best, 0.01)},
                               {"p10", quantile(best, 0.10)},
                               {"p50", quantile(best, 0.50)},
                               {"p90", quantile(best, 0.90)},
                               {"p99", quantile(best, 0.99)}};
  return statistics;
}

std::optional<double> label_gap(const signature::RowMatrixF& signatures,
                                std::span<const std::string> labels) {
  std::map<std::string_view, PairSum> by_label;
  PairSum all(signatures.cols());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = signatures.row(static_cast<Eigen::Index>(i));
    by_label.try_emplace(labels[i], signatures.cols()).first->second.add(row);
    all.add(row);
  }
  double same = 0;
  double same_pairs = 0;
  for (const auto& [label, group] : by_label) {
    same += group.cosines();
    same_pairs += group.pairs();
  }
  const double different_pairs = all.pairs() - same_pairs;
  if (same_pairs == 0 || different_pairs == 0) {
    return std::nullopt;
  }
  return same / same_pairs - (all.cosines() - same) / different_pairs;
}

std::vector<std::string> calibration_warnings(const CalibrationFacts& facts) {
  std::vector<std::string> warnings;
  const std::size_t n = facts.trace.requests();
  const std::size_t clusters = facts.cluster_sizes.size();
  const std::size_t wanted = std::max(kFewRequests, kFewRequestsPerCluster * clusters);
  if (n < wanted) {
    warnings.push_back(
        fmt::format("{} calibration requests for {} cluster{} are few; {} or more give a steadier fit", n,
                    clusters, clusters == 1 ? "" : "s", wanted));
  }
  std::vector<std::uint32_t> decode = facts.trace.decode_tokens;
  std::nth_element(decode.begin(), decode.begin() + static_cast<std::ptrdiff_t>(n / 2), decode.end());
  if (decode[n / 2] < kShortDecode) {
    warnings.push_back(fmt::format(
        "half of the requests decoded {} tokens or fewer; at least {} show which experts decoding uses",
        decode[n / 2], kShortDecode));
  }
  if (facts.directionless > 0) {
    warnings.push_back(fmt::format(
        "{} of {} requests have a zero signature and would be routed by load alone", facts.directionless, n));
  }
  for (std::size_t cluster = 0; cluster < clusters; ++cluster) {
    if (2 * facts.cluster_sizes[cluster] * clusters < n) {
      warnings.push_back(fmt::format("cluster {} has {} requests, under half of an even share of {}", cluster,
                                     facts.cluster_sizes[cluster], n / clusters));
    }
  }
  if (clusters > 1 && facts.nearest_share * static_cast<double>(clusters) > kCrowded) {
    warnings.push_back(
        fmt::format("one centroid is nearest to {:.0f} % of the requests ({:.0f} % would be even): "
                    "LocalityBand may overload "
                    "its worker at high load; LoadAwareBand does not",
                    100 * facts.nearest_share, 100.0 / static_cast<double>(clusters)));
  }
  if (facts.label_gap && *facts.label_gap < kSmallLabelGap) {
    warnings.push_back(
        fmt::format("labels are not separated: two requests of one label are only {:.3f} more alike than two "
                    "of different "
                    "labels",
                    *facts.label_gap));
  }
  if (facts.held_out_rho && facts.rho - *facts.held_out_rho > kOverfit) {
    warnings.push_back(fmt::format(
        "rho is {:.4f} on the calibration requests and {:.4f} on held-out ones: the layers fit the sample",
        facts.rho, *facts.held_out_rho));
  }
  if (const auto peak = std::max_element(facts.layer_rhos.begin(), facts.layer_rhos.end());
      peak != facts.layer_rhos.end() && *peak - facts.rho > kGivenUp) {
    warnings.push_back(fmt::format("rho is {:.4f} with the layers that max-layers allows and {:.4f} with {}",
                                   facts.rho, *peak, peak - facts.layer_rhos.begin() + 1));
  }
  return warnings;
}

}  // namespace eldr::calibrator

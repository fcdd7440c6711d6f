// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/label_similarity.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace eldr::calibrator {
namespace {

std::vector<std::uint32_t> ordered_by_main_label(const Eigen::MatrixXi& counts) {
  std::vector<std::uint32_t> order(static_cast<std::size_t>(counts.cols()));
  std::iota(order.begin(), order.end(), 0U);
  const auto rank = [&](std::uint32_t cluster) {
    Eigen::Index main = 0;
    const int most = counts.col(cluster).maxCoeff(&main);
    return std::tuple(main, -most, cluster);
  };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return rank(a) < rank(b); });
  return order;
}

Eigen::MatrixXi count(const LabelGroups& labels, const signature::CentroidSet& set) {
  Eigen::MatrixXi counts = Eigen::MatrixXi::Zero(static_cast<Eigen::Index>(labels.count()), set.clusters());
  for (std::size_t r = 0; r < labels.of_request.size(); ++r) {
    ++counts(labels.of_request[r], set.assignment[r]);
  }
  return counts;
}

double share_of_main_labels(const FittedTrace& fitted) {
  const std::size_t requests = fitted.trace.requests();
  const LabelGroups all = group_labels(fitted.trace.labels, requests, std::max<std::size_t>(requests, 2));
  return count(all, fitted.set).colwise().maxCoeff().sum() / static_cast<double>(requests);
}

}  // namespace

LabelSimilarity label_similarity(const FittedTrace& fitted, std::size_t most_labels) {
  LabelSimilarity result;
  result.labels = group_labels(fitted.trace.labels, fitted.trace.requests(), most_labels);
  const auto rows = static_cast<Eigen::Index>(result.labels.count());
  const Eigen::Index clusters = fitted.similarities.cols();
  result.cosine = Eigen::MatrixXd::Zero(rows, clusters);
  result.counts = count(result.labels, fitted.set);
  Eigen::VectorXd directed = Eigen::VectorXd::Zero(rows);
  for (const std::size_t r : fitted.directed) {
    const Eigen::Index label = result.labels.of_request[r];
    result.cosine.row(label) += fitted.similarities.row(static_cast<Eigen::Index>(r)).cast<double>();
    ++directed[label];
  }
  for (Eigen::Index label = 0; label < rows; ++label) {
    if (directed[label] > 0) {
      result.cosine.row(label) /= directed[label];
    } else {
      result.cosine.row(label).setConstant(std::numeric_limits<double>::quiet_NaN());
    }
  }
  result.cluster_order = ordered_by_main_label(result.counts);
  result.main_label_share = share_of_main_labels(fitted);
  return result;
}

}  // namespace eldr::calibrator

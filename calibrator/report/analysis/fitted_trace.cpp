// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/fitted_trace.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "calibrator/fit/features.h"
#include "calibrator/fit/indices.h"

namespace eldr::calibrator {
namespace {

using signature::CentroidSet;
using signature::RowMatrixF;
using signature::Trace;

/// A file may keep centroids in 8 bits, which costs a cosine at most 0.001; another trace of the same model
/// costs more.
constexpr double kLeastCosineWithMean = 0.995;

template <class Value>
Status same(const char* what, const Value& in_trace, const Value& in_set) {
  if (in_trace == in_set) {
    return {};
  }
  return failure(
      Code::kInvalid,
      fmt::format("trace and centroids do not belong together: {} is {} in the trace and {} in the centroids",
                  what, in_trace, in_set));
}

Status check_shapes(const Trace& trace, const CentroidSet& set) {
  for (const Status& status :
       {same("model", "\"" + trace.model + "\"", "\"" + set.model + "\""),
        same("experts a layer", trace.experts, set.spec.experts), same("top_k", trace.top_k, set.top_k),
        same("the number of requests", trace.requests(), std::size_t{set.requests()})}) {
    if (!status) {
      return status;
    }
  }
  return {};
}

/// Where the kept layers are in the trace.
Result<std::vector<std::size_t>> kept_layers(const Trace& trace, const CentroidSet& set) {
  std::vector<std::size_t> rows;
  for (const std::int32_t layer : set.spec.layers) {
    const auto found = std::find(trace.layers.begin(), trace.layers.end(), layer);
    if (found == trace.layers.end()) {
      return failure(
          Code::kInvalid,
          fmt::format("trace and centroids do not belong together: layer {} is kept and not in the trace",
                      layer));
    }
    rows.push_back(static_cast<std::size_t>(found - trace.layers.begin()));
  }
  return rows;
}

RowMatrixF signatures_of(const Trace& trace, const CentroidSet& set, const std::vector<std::size_t>& layers) {
  RowMatrixF idf = RowMatrixF::Ones(static_cast<Eigen::Index>(trace.layers.size()), trace.experts);
  for (std::size_t s = 0; s < layers.size(); ++s) {
    idf.row(static_cast<Eigen::Index>(layers[s])) = set.spec.idf.row(static_cast<Eigen::Index>(s));
  }
  return unit_signatures(
      prefill_features(trace, indices_below(trace.requests()), layers, set.spec.transform, idf));
}

/// Each centroid is the direction of the sum of its requests' signatures.
Status check_means(const CentroidSet& set, const RowMatrixF& signatures) {
  const Eigen::MatrixXd sums = cluster_sums(signatures, set.assignment, set.clusters());
  for (Eigen::Index cluster = 0; cluster < sums.rows(); ++cluster) {
    const double length = sums.row(cluster).norm();
    const double cosine =
        length > 0 ? sums.row(cluster).dot(set.centroids.row(cluster).cast<double>()) / length : 0;
    if (cosine < kLeastCosineWithMean) {
      return failure(
          Code::kInvalid,
          fmt::format("trace and centroids do not belong together: centroid {} has cosine {:.3f} with the "
                      "mean of its requests; it must be their mean",
                      cluster, cosine));
    }
  }
  return {};
}

}  // namespace

Result<FittedTrace> match_trace(const Trace& trace, const CentroidSet& set) {
  if (const Status shapes = check_shapes(trace, set); !shapes) {
    return failure(shapes.error());
  }
  const auto layers = kept_layers(trace, set);
  if (!layers) {
    return failure(layers.error());
  }
  FittedTrace fitted{trace, set, signatures_of(trace, set, *layers), {}, {}};
  if (const Status means = check_means(set, fitted.signatures); !means) {
    return failure(means.error());
  }
  fitted.similarities = fitted.signatures * set.centroids.transpose();
  for (std::size_t r = 0; r < trace.requests(); ++r) {
    if (fitted.signatures.row(static_cast<Eigen::Index>(r)).squaredNorm() > 0) {
      fitted.directed.push_back(r);
    }
  }
  return fitted;
}

}  // namespace eldr::calibrator

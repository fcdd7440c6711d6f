// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/features.h"

#include <cmath>

namespace eldr::calibrator {
namespace {

using signature::RowMatrixF;
using signature::Transform;

float transformed(std::uint32_t count, float idf, Transform transform) {
  const auto value = static_cast<float>(count);
  switch (transform) {
    case Transform::kCountIdf:
      return value * idf;
    case Transform::kCount:
      return value;
    case Transform::kSqrtCount:
      return std::sqrt(value);
    case Transform::kBinary:
      return count > 0 ? 1.0F : 0.0F;
  }
  return value;
}

}  // namespace

RowMatrixF idf_of(const signature::Trace& trace, std::span<const std::size_t> requests, Transform transform) {
  const auto layers = static_cast<Eigen::Index>(trace.layers.size());
  if (transform != Transform::kCountIdf) {
    return RowMatrixF::Ones(layers, trace.experts);
  }
  std::vector<std::uint32_t> document_frequency(trace.layers.size() * trace.experts, 0);
  for (const std::size_t request : requests) {
    const auto counts = trace.prefill(request);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      document_frequency[i] += counts[i] > 0 ? 1 : 0;
    }
  }
  const std::vector<float> weights =
      signature::inverse_document_frequency(document_frequency, static_cast<std::uint32_t>(requests.size()));
  return Eigen::Map<const RowMatrixF>(weights.data(), layers, trace.experts);
}

LayerFeatures prefill_features(const signature::Trace& trace, std::span<const std::size_t> requests,
                               std::span<const std::size_t> layers, Transform transform,
                               const RowMatrixF& idf) {
  LayerFeatures features;
  features.layer_matrices.reserve(layers.size());
  for (const std::size_t layer : layers) {
    RowMatrixF matrix(requests.size(), trace.experts);
    for (std::size_t row = 0; row < requests.size(); ++row) {
      const auto counts = trace.prefill(requests[row]).subspan(layer * trace.experts, trace.experts);
      for (std::size_t e = 0; e < trace.experts; ++e) {
        matrix(row, e) = transformed(counts[e], idf(layer, e), transform);
      }
    }
    features.layer_matrices.push_back(std::move(matrix));
  }
  return features;
}

LayerFeatures decode_features(const signature::Trace& trace, std::span<const std::size_t> requests) {
  LayerFeatures features;
  features.layer_matrices.reserve(trace.layers.size());
  for (std::size_t layer = 0; layer < trace.layers.size(); ++layer) {
    RowMatrixF matrix(requests.size(), trace.experts);
    for (std::size_t row = 0; row < requests.size(); ++row) {
      const auto counts = trace.decode(requests[row]).subspan(layer * trace.experts, trace.experts);
      for (std::size_t e = 0; e < trace.experts; ++e) {
        matrix(row, e) = static_cast<float>(counts[e]);
      }
    }
    features.layer_matrices.push_back(std::move(matrix));
  }
  return features;
}

RowMatrixF unit_signatures(const LayerFeatures& features) {
  Eigen::Index columns = 0;
  for (const RowMatrixF& matrix : features.layer_matrices) {
    columns += matrix.cols();
  }
  RowMatrixF rows(features.requests(), columns);
  Eigen::Index column = 0;
  for (const RowMatrixF& matrix : features.layer_matrices) {
    rows.middleCols(column, matrix.cols()) = matrix;
    column += matrix.cols();
  }
  for (Eigen::Index row = 0; row < rows.rows(); ++row) {
    const double length = rows.row(row).cast<double>().norm();
    if (length > 0) {
      rows.row(row) = (rows.row(row).cast<double>() / length).cast<float>();
    }
  }
  return rows;
}

Eigen::MatrixXd cluster_sums(const RowMatrixF& signatures, std::span<const std::uint32_t> assignment,
                             std::uint32_t clusters) {
  Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(clusters, signatures.cols());
  for (std::size_t request = 0; request < assignment.size(); ++request) {
    sums.row(assignment[request]) += signatures.row(static_cast<Eigen::Index>(request)).cast<double>();
  }
  return sums;
}

}  // namespace eldr::calibrator

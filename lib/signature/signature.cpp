// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/signature.h"

#include <array>
#include <cassert>
#include <cmath>

#include "lib/signature/text.h"

namespace eldr::signature {
namespace {

using CountRow = Eigen::Map<const Eigen::Array<std::uint32_t, 1, Eigen::Dynamic>>;
using FloatRow = Eigen::Array<float, 1, Eigen::Dynamic>;

constexpr std::array<Transform, 4> kTransforms = {Transform::kCountIdf, Transform::kCount,
                                                  Transform::kSqrtCount, Transform::kBinary};

/// `counts` of one layer, transformed, into `out`.
void transform_row(const SignatureSpec& spec, Eigen::Index row, const CountRow& counts,
                   Eigen::Ref<FloatRow> out) {
  switch (spec.transform) {
    case Transform::kCountIdf:
      out = counts.cast<float>() * spec.idf.row(row).array();
      return;
    case Transform::kCount:
      out = counts.cast<float>();
      return;
    case Transform::kSqrtCount:
      out = counts.cast<float>().sqrt();
      return;
    case Transform::kBinary:
      out = (counts > 0U).cast<float>();
      return;
  }
}

}  // namespace

std::string_view name_of(Transform transform) {
  switch (transform) {
    case Transform::kCountIdf:
      return "count-idf";
    case Transform::kCount:
      return "count";
    case Transform::kSqrtCount:
      return "sqrt-count";
    case Transform::kBinary:
      return "binary";
  }
  return "count-idf";
}

Result<Transform> transform_from(std::string_view name) {
  for (const Transform transform : kTransforms) {
    if (name_of(transform) == name) return transform;
  }
  return failure(Code::kInvalid,
                 "transform " + in_quotes(name) + ": must be count-idf, count, sqrt-count or binary");
}

std::vector<float> inverse_document_frequency(std::span<const std::uint32_t> document_frequency,
                                              std::uint32_t requests) {
  std::vector<float> weights;
  weights.reserve(document_frequency.size());
  for (const std::uint32_t frequency : document_frequency) {
    weights.push_back(static_cast<float>(std::log((requests + 1.0) / (frequency + 1.0))));
  }
  return weights;
}

Result<std::optional<Eigen::VectorXf>> signature_of(const SignatureSpec& spec, const ExpertCounts& counts) {
  if (counts.experts != spec.experts) {
    return failure(Code::kInvalid, "counts have " + std::to_string(counts.experts) +
                                       " experts; the centroids have " + std::to_string(spec.experts));
  }
  const auto experts = static_cast<Eigen::Index>(spec.experts);
  Eigen::VectorXf signature(static_cast<Eigen::Index>(spec.dimension()));
  for (std::size_t s = 0; s < spec.layers.size(); ++s) {
    const int row = counts.row_of(spec.layers[s]);
    if (row < 0) return failure(Code::kInvalid, "counts lack layer " + std::to_string(spec.layers[s]));
    const CountRow layer(counts.counts.data() + static_cast<std::size_t>(row) * spec.experts, experts);
    Eigen::Map<FloatRow> out(signature.data() + static_cast<Eigen::Index>(s) * experts, experts);
    transform_row(spec, static_cast<Eigen::Index>(s), layer, out);
  }
  // In double: the squares of large counts leave the range of float.
  const double norm = std::sqrt(signature.cast<double>().squaredNorm());
  if (!(norm > 0)) return std::nullopt;
  signature = (signature.cast<double>() / norm).cast<float>();
  return signature;
}

Eigen::VectorXf similarities(const RowMatrixF& centroids, const Eigen::VectorXf& signature) {
  assert(centroids.cols() == signature.size());
  return centroids * signature;
}

}  // namespace eldr::signature

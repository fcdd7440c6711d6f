// SPDX-License-Identifier: Apache-2.0
// From counts to a direction: the expert signature of a request (ELDR, arXiv 2607.00466; steps 1-4 of its
// section on signatures).
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lib/base/status.h"
#include "lib/signature/counts.h"

namespace eldr::signature {

using RowMatrixF = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// What is done to a count c before IDF and normalisation.
enum class Transform {
  kCountIdf,   ///< c * idf, the paper's choice
  kCount,      ///< c
  kSqrtCount,  ///< sqrt(c)
  kBinary,     ///< 1 if c > 0
};
std::string_view name_of(Transform transform);            ///< "count-idf", "count", "sqrt-count", "binary"
Result<Transform> transform_from(std::string_view name);  ///< kInvalid lists the four names

/// w(l, e) = log((C + 1) / (df(l, e) + 1)), df = calibration requests with c(l, e) > 0, C = `requests`.
/// `document_frequency` is any shape, flattened; the answer has the same order.
std::vector<float> inverse_document_frequency(std::span<const std::uint32_t> document_frequency,
                                              std::uint32_t requests);

/// Which layers, in which order, with which weights. Immutable once made: shared between threads freely.
struct SignatureSpec {
  std::vector<std::int32_t> layers;  ///< model layer numbers in the order chosen, length S
  std::uint32_t experts = 0;         ///< E
  Transform transform = Transform::kCountIdf;
  RowMatrixF idf;  ///< [S][E]; all ones where the transform does not use it

  std::size_t dimension() const { return layers.size() * experts; }
};

/// s_r, L2-normalised, length S*E. nullopt: a zero vector, which has no direction: route by load.
/// kInvalid: another expert count, or a layer of the spec is missing from `counts`.
Result<std::optional<Eigen::VectorXf>> signature_of(const SignatureSpec& spec, const ExpertCounts& counts);

/// Cosine of `signature` with each row of `centroids` [K][S*E] (rows are unit length); length K.
Eigen::VectorXf similarities(const RowMatrixF& centroids, const Eigen::VectorXf& signature);

}  // namespace eldr::signature

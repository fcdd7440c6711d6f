// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/centroid_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/signature/tensor_values.h"

namespace eldr::signature {
namespace {

using MatrixI8 = Eigen::Matrix<std::int8_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixF16 = Eigen::Matrix<Eigen::half, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
static_assert(sizeof(Eigen::half) == 2);

constexpr float kMostI8 = 127.0F;

Eigen::VectorXf scales_of(const RowMatrixF& rows) { return rows.cwiseAbs().rowwise().maxCoeff() / kMostI8; }

MatrixI8 to_i8(const RowMatrixF& rows, const Eigen::VectorXf& scales) {
  MatrixI8 out(rows.rows(), rows.cols());
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    out.row(k) =
        (rows.row(k).array() / scales[k]).round().min(kMostI8).max(-kMostI8).cast<std::int8_t>().matrix();
  }
  return out;
}

RowMatrixF from_i8(const MatrixI8& values, const Eigen::VectorXf& scales) {
  return scales.asDiagonal() * values.cast<float>();
}

template <class Matrix>
std::vector<std::byte> copy_bytes(const Matrix& matrix) {
  const auto bytes = std::as_bytes(std::span(matrix.data(), static_cast<std::size_t>(matrix.size())));
  return {bytes.begin(), bytes.end()};
}

template <class Matrix>
Matrix matrix_of(const TensorView& view) {
  Matrix matrix(static_cast<Eigen::Index>(view.shape[0]), static_cast<Eigen::Index>(view.shape[1]));
  if (!view.bytes.empty())
    std::memcpy(static_cast<void*>(matrix.data()), view.bytes.data(), view.bytes.size());
  return matrix;
}

/// Smallest cosine of a row with the same row of the other matrix.
double worst_cosine(const RowMatrixF& a, const RowMatrixF& b) {
  double worst = 1;
  for (Eigen::Index k = 0; k < a.rows(); ++k) {
    const Eigen::RowVectorXd left = a.row(k).cast<double>();
    const Eigen::RowVectorXd right = b.row(k).cast<double>();
    worst = std::min(worst, left.dot(right) / (left.norm() * right.norm()));
  }
  return worst;
}

tl::unexpected<Error> invalid(const std::string& tensor, const std::string& why) {
  return failure(Code::kInvalid, "tensor \"" + tensor + "\": " + why);
}

Result<RowMatrixF> decode_i8(const SafetensorsFile& file, const TensorView& view) {
  const auto scale = file.get("centroid_scale", DType::kF32, {view.shape[0]});
  if (!scale) return failure(scale.error());
  if (scale->shape[0] != view.shape[0]) return invalid("centroid_scale", "must have one number a cluster");
  const auto scales = values_of<float>(*scale);
  if (!std::all_of(scales.begin(), scales.end(), [](float s) { return std::isfinite(s) && s > 0; })) {
    return invalid("centroid_scale", "a scale is not a positive number");
  }
  return from_i8(matrix_of<MatrixI8>(view),
                 Eigen::Map<const Eigen::VectorXf>(scales.data(), static_cast<Eigen::Index>(scales.size())));
}

}  // namespace

Result<EncodedCentroids> encode_centroids(const RowMatrixF& rows, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return EncodedCentroids{copy_bytes(rows), {}};
    case DType::kF16:
      return EncodedCentroids{copy_bytes(MatrixF16(rows.cast<Eigen::half>())), {}};
    case DType::kI8: {
      const Eigen::VectorXf scales = scales_of(rows);
      return EncodedCentroids{copy_bytes(to_i8(rows, scales)), {scales.begin(), scales.end()}};
    }
    default:
      return invalid("centroids", "dtype " + std::string(name_of(dtype)) + "; must be I8, F16 or F32");
  }
}

Result<RowMatrixF> decode_centroids(const SafetensorsFile& file, std::size_t dimension) {
  const auto found = file.tensors().find("centroids");
  const DType dtype = found == file.tensors().end() ? DType::kF32 : found->second.dtype;
  if (dtype != DType::kI8 && dtype != DType::kF16 && dtype != DType::kF32) {
    return invalid("centroids", "dtype " + std::string(name_of(dtype)) + "; must be I8, F16 or F32");
  }
  const auto view = file.get("centroids", dtype, {0, dimension});
  if (!view) return failure(view.error());
  if (dtype != DType::kI8 && file.has("centroid_scale"))
    return invalid("centroid_scale", "belongs to I8 centroids only");

  Result<RowMatrixF> rows = dtype == DType::kI8 ? decode_i8(file, *view)
                            : dtype == DType::kF16
                                ? Result<RowMatrixF>(matrix_of<MatrixF16>(*view).cast<float>())
                                : Result<RowMatrixF>(matrix_of<RowMatrixF>(*view));
  if (rows && !rows->allFinite()) return invalid("centroids", "a value is not a finite number");
  return rows;
}

DType narrowest_dtype(const RowMatrixF& rows) {
  const Eigen::VectorXf scales = scales_of(rows);
  if (worst_cosine(rows, from_i8(to_i8(rows, scales), scales)) >= 1 - kMaxCosineLoss) return DType::kI8;
  const RowMatrixF halves = MatrixF16(rows.cast<Eigen::half>()).cast<float>();
  return worst_cosine(rows, halves) >= 1 - kMaxCosineLoss ? DType::kF16 : DType::kF32;
}

}  // namespace eldr::signature

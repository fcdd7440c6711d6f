// SPDX-License-Identifier: Apache-2.0
// Centroid rows as numbers of 8, 16 or 32 bits. Internal to lib/signature.
#pragma once

#include <cstddef>
#include <vector>

#include "lib/base/status.h"
#include "lib/signature/safetensors.h"
#include "lib/signature/signature.h"

namespace eldr::signature {

/// Largest loss of cosine between a centroid and what a file keeps of it.
inline constexpr double kMaxCosineLoss = 0.001;

struct EncodedCentroids {
  std::vector<std::byte> bytes;  ///< [K][S*E] of the dtype
  std::vector<float> scale;      ///< [K] for I8: value = integer * scale; else empty
};

/// `dtype` is I8 (with a scale a row: its largest magnitude / 127), F16 or F32; kInvalid otherwise. Rows must
/// be finite and not zero.
Result<EncodedCentroids> encode_centroids(const RowMatrixF& rows, DType dtype);
/// Tensor `centroids` [K][dimension], with `centroid_scale` where it is I8. kInvalid: other dtypes, a scale
/// that is not positive, a scale that is there without need, a value that is not finite. Rows are as they
/// decode, not normalised.
Result<RowMatrixF> decode_centroids(const SafetensorsFile& file, std::size_t dimension);
/// The first of I8, F16, F32 that loses at most kMaxCosineLoss in every row.
DType narrowest_dtype(const RowMatrixF& rows);

}  // namespace eldr::signature

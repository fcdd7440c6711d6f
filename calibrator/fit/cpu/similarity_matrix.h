// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrator/fit/similarity_matrix.h"
#include "lib/signature/signature.h"

namespace eldr::calibrator::cpu {

/// 4 N^2 bytes.
std::unique_ptr<SimilarityMatrix> make_similarity_matrix(const signature::RowMatrixF& rows, unsigned threads);

}  // namespace eldr::calibrator::cpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "calibrator/cuda/session.h"
#include "calibrator/fit/similarity_matrix.h"
#include "lib/signature/signature.h"

namespace eldr::calibrator::cuda {

Result<std::unique_ptr<SimilarityMatrix>> make_similarity_matrix(std::shared_ptr<Session> session,
                                                                 const signature::RowMatrixF& rows);

}  // namespace eldr::calibrator::cuda

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/check_pairs.h"

#include <algorithm>
#include <string>

#include "calibrator/fit/pairs.h"

namespace eldr::calibrator {
namespace {

/// About 65,000 requests.
constexpr std::size_t kMaxPairs = std::size_t{1} << 31U;

}  // namespace

Status check_pairs(const LayerFeatures& prefill, const LayerFeatures& decode) {
  const std::size_t n = prefill.requests();
  if (n < 2 || decode.requests() != n) {
    return failure(Code::kInvalid, "a correlation over pairs needs at least 2 requests; there are " +
                                       std::to_string(std::min(n, decode.requests())));
  }
  if (pair_count(n) >= kMaxPairs) {
    return failure(Code::kResourceExhausted, std::to_string(n) + " requests are " +
                                                 std::to_string(pair_count(n)) + " pairs; fewer than " +
                                                 std::to_string(kMaxPairs) + " are allowed");
  }
  return {};
}

}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
// Draws a sample from a data set file in two passes: the first judges every line and counts labels, the
// second keeps the lines drawn. Memory is bounded by the sample and the number of labels, not by the data
// set.
#pragma once

#include <cstdint>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "calibrator/dataset/prompt.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

struct BadLine {
  std::uint64_t number = 0;
  std::string reason;
};

struct Sample {
  std::vector<Prompt> prompts;  ///< in the order of the data set
  std::uint64_t lines = 0;      ///< lines that are not blank
  std::uint64_t bad_lines = 0;
  std::vector<BadLine> first_bad;                  ///< the first few
  std::map<std::string, std::uint64_t> available;  ///< good lines by label
};

/// More bad lines than this share end the calibration.
inline constexpr double kMaxBadShare = 0.05;

/// `size` prompts (all, when there are fewer), by label in proportion to what is there, drawn by `seed`: the
/// same file, size and seed give the same sample. kNotFound: no such file; kInvalid: over 5 % bad lines (the
/// message names the first of them), no good line, or over 10,000 labels; kCancelled.
Result<Sample> draw_sample(const std::string& path, std::uint64_t size, std::uint64_t seed,
                           const std::stop_token& stop);

/// How many of each label: proportional, remainders to the largest fractions (ties: first label first). The
/// sum is min(size, all).
std::map<std::string, std::uint64_t> quotas_of(const std::map<std::string, std::uint64_t>& available,
                                               std::uint64_t size);

}  // namespace eldr::calibrator

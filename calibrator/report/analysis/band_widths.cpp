// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/analysis/band_widths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lib/signature/band.h"

namespace eldr::calibrator {
namespace {

using signature::Candidate;

constexpr std::size_t kCurvePoints = 41;
constexpr double kWholePool = 0.98;  ///< of the centroids, on average: more tau changes nothing worth showing

std::vector<std::vector<Candidate>> candidates_of(const signature::RowMatrixF& similarities) {
  std::vector<std::vector<Candidate>> candidates(static_cast<std::size_t>(similarities.rows()));
  for (Eigen::Index r = 0; r < similarities.rows(); ++r) {
    for (const float similarity : similarities.row(r)) {
      candidates[static_cast<std::size_t>(r)].push_back({.similarity = similarity});
    }
  }
  return candidates;
}

std::vector<std::size_t> widths_at(const std::vector<std::vector<Candidate>>& requests, double tau) {
  std::vector<std::size_t> widths;
  widths.reserve(requests.size());
  for (const std::vector<Candidate>& candidates : requests) {
    widths.push_back(signature::locality_band(candidates, static_cast<float>(tau)).size());
  }
  return widths;
}

BandAtTau summary_of(double tau, std::vector<std::size_t> widths) {
  if (widths.empty()) {
    return {.tau = tau};
  }
  std::sort(widths.begin(), widths.end());
  const auto at = [&](double share) {
    return static_cast<double>(
        widths[static_cast<std::size_t>(share * static_cast<double>(widths.size() - 1))]);
  };
  const double sum = std::accumulate(widths.begin(), widths.end(), 0.0);
  return {tau, sum / static_cast<double>(widths.size()), at(0.1), at(0.9)};
}

/// The end of the curve: a round number at which nearly every band is the whole pool, with the chosen tau
/// well inside.
double widest_tau(const std::vector<std::vector<Candidate>>& requests, double clusters, double chosen) {
  for (const double tau : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.5}) {
    if (tau >= 1.5 * chosen && summary_of(tau, widths_at(requests, tau)).mean >= kWholePool * clusters) {
      return tau;
    }
  }
  return 2.0;
}

}  // namespace

BandWidths band_widths(const signature::RowMatrixF& similarities, double tau) {
  const auto requests = candidates_of(similarities);
  const auto chosen = widths_at(requests, tau);
  BandWidths bands{
      summary_of(tau, chosen), std::vector<std::uint32_t>(static_cast<std::size_t>(similarities.cols())), {}};
  for (const std::size_t width : chosen) {
    ++bands.requests[width - 1];
  }
  const double widest = widest_tau(requests, static_cast<double>(similarities.cols()), tau);
  for (std::size_t i = 0; i < kCurvePoints; ++i) {
    const double at = widest * static_cast<double>(i) / (kCurvePoints - 1);
    bands.curve.push_back(summary_of(at, widths_at(requests, at)));
  }
  return bands;
}

}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
// Everything that the report shows, as numbers: the page, the text and the JSON are three views of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibrator/fit/selection_record.h"
#include "calibrator/report/analysis/band_widths.h"
#include "calibrator/report/analysis/cluster_load.h"
#include "calibrator/report/analysis/distinct_experts.h"
#include "calibrator/report/analysis/label_similarity.h"
#include "calibrator/report/analysis/request_map.h"
#include "lib/base/status.h"
#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"

namespace eldr::calibrator {

/// A value: it refers to nothing.
struct Analysis {
  std::string model;
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  std::size_t requests = 0;
  std::size_t directionless = 0;  ///< requests with a zero signature
  std::size_t decoded = 0;        ///< requests with decode tokens
  std::uint64_t prompt_tokens = 0;
  std::uint64_t decode_tokens = 0;
  std::size_t model_layers = 0;           ///< MoE layers in the trace
  std::vector<std::int32_t> layers_kept;  ///< in the order chosen
  std::string transform;
  double rho = 0;
  double rho_all_layers = 0;
  std::optional<double> held_out_rho;  ///< of the transform used
  double spread = 0;
  std::uint64_t seed = 0;
  std::string fit_hash;
  bool placement = false;
  std::vector<std::uint32_t> assignment;  ///< [N]
  std::vector<std::string> labels;        ///< [N] or empty

  std::optional<SelectionRecord> selection;
  std::optional<double> label_gap;
  double nearest_share = 0;  ///< largest share of requests that one centroid is nearest to
  LabelSimilarity similarity;
  ClusterLoad load;
  RequestMap map;
  std::vector<BatchExperts> experts_by_batch;
  BatchSampling sampling;
  BandWidths band;
  std::vector<std::string> warnings;

  std::uint32_t clusters() const { return static_cast<std::uint32_t>(load.assigned.size()); }
};

/// Deterministic. kInvalid: the trace and the centroids do not belong together.
Result<Analysis> analyse(const signature::Trace& trace, const signature::CentroidSet& set);

}  // namespace eldr::calibrator

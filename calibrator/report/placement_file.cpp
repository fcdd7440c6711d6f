// SPDX-License-Identifier: Apache-2.0
#include "calibrator/report/placement_file.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "calibrator/report/rounded.h"
#include "lib/signature/safetensors.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

/// Experts by physical slot: rank 0's first. Within a rank in their own order.
std::vector<std::size_t> physical_to_logical(std::span<const std::int16_t> rank_of, std::uint32_t ranks) {
  std::vector<std::size_t> slots;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t expert = 0; expert < rank_of.size(); ++expert) {
      if (static_cast<std::uint32_t>(rank_of[expert]) == rank) {
        slots.push_back(expert);
      }
    }
  }
  return slots;
}

}  // namespace

json placement_json(const ExpertPlans& plans, const signature::Trace& trace,
                    const signature::CentroidSet& set) {
  json clusters = json::array();
  for (std::size_t cluster = 0; cluster < plans.clusters(); ++cluster) {
    json maps = json::array();
    json planned = json::array();
    json identity = json::array();
    for (std::size_t layer = 0; layer < plans.layers; ++layer) {
      maps.push_back(physical_to_logical(plans.plan(cluster, layer), plans.ranks));
      const FullestRank& fullest = plans.fullest[cluster * plans.layers + layer];
      planned.push_back(rounded(fullest.planned));
      identity.push_back(rounded(fullest.identity));
    }
    clusters.push_back({{"cluster", cluster},
                        {"requests", std::count(set.assignment.begin(), set.assignment.end(), cluster)},
                        {"physicalToLogical", std::move(maps)},
                        {"fullestRank", std::move(planned)},
                        {"fullestRankIdentity", std::move(identity)}});
  }
  return {{"format", "eldr-placement/1"},   {"model", set.model},
          {"fitHash", set.fit_hash},        {"ranks", plans.ranks},
          {"experts", plans.experts},       {"slotsPerRank", plans.experts / plans.ranks},
          {"batch", plans.batch},           {"layers", trace.layers},
          {"clusters", std::move(clusters)}};
}

Status write_placement(const std::string& path, const FitResult& result, const signature::Trace& trace) {
  if (!result.expert_plans) {
    return failure(Code::kInvalid, "there is none with one expert-parallel rank");
  }
  const std::string text = placement_json(*result.expert_plans, trace, result.set)
                               .dump(-1, ' ', false, json::error_handler_t::replace) +
                           "\n";
  return signature::write_file_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace eldr::calibrator

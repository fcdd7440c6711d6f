// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/selection_record.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "lib/signature/counts.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

constexpr const char* kOrder = "layer_order";
constexpr const char* kRhos = "layer_rhos";
constexpr const char* kHeldOut = "held_out_rhos";

std::string decimals(const std::vector<double>& values) {
  std::string list;
  for (const double value : values) {
    list += fmt::format("{}{:.6f}", list.empty() ? "" : ",", value);
  }
  return "[" + list + "]";
}

tl::unexpected<Error> not_a_record(const char* key, const std::string& reason) {
  return failure(Code::kInvalid, fmt::format("centroids: metadata {}: {}", key, reason));
}

bool is_rho(const json& value) {
  return value.is_number() && value.get<double>() >= -1 && value.get<double>() <= 1;
}

bool is_layer(const json& value) {
  return value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
         value.get<std::int64_t>() <= std::numeric_limits<std::int32_t>::max();
}

/// A list of 1 to kMaxLayers items that all pass `good`.
template <class Item>
Result<std::vector<Item>> list_of(const signature::CentroidSet& set, const char* key,
                                  bool (*good)(const json&), const char* wanted) {
  const json list = json::parse(set.extra.at(key), nullptr, false);
  if (!list.is_array() || list.empty() || list.size() > signature::kMaxLayers ||
      !std::all_of(list.begin(), list.end(), good)) {
    return not_a_record(key, fmt::format("must be a JSON list of 1 to {} {}", signature::kMaxLayers, wanted));
  }
  return list.get<std::vector<Item>>();
}

Result<std::vector<HeldOutRho>> held_out_of(const signature::CentroidSet& set) {
  std::vector<HeldOutRho> measured;
  const auto text = set.extra.find(kHeldOut);
  if (text == set.extra.end()) {
    return measured;
  }
  const json object = json::parse(text->second, nullptr, false);
  if (!object.is_object()) {
    return not_a_record(kHeldOut, "must be a JSON object");
  }
  for (const auto& [transform, rho] : object.items()) {
    if (!signature::transform_from(transform) || !is_rho(rho)) {
      return not_a_record(kHeldOut, "must hold transforms, each with a number from -1 to 1");
    }
    measured.push_back({transform, rho.get<double>()});
  }
  return measured;
}

}  // namespace

void keep_selection_record(const SelectionRecord& record, signature::CentroidSet& set) {
  set.extra[kOrder] = json(record.layers).dump();
  set.extra[kRhos] = decimals(record.rhos);
  if (record.held_out.empty()) {
    return;
  }
  std::string object;
  for (const HeldOutRho& measured : record.held_out) {
    object += fmt::format("{}\"{}\":{:.6f}", object.empty() ? "" : ",", measured.transform, measured.rho);
  }
  set.extra[kHeldOut] = "{" + object + "}";
}

Result<std::optional<double>> held_out_rho_of(const signature::CentroidSet& set) {
  const auto text = set.extra.find("held_out_rho");
  if (text == set.extra.end()) {
    return std::nullopt;
  }
  const json value = json::parse(text->second, nullptr, false);
  if (!is_rho(value)) {
    return not_a_record("held_out_rho", "must be a number from -1 to 1");
  }
  return value.get<double>();
}

Result<std::optional<SelectionRecord>> selection_record_of(const signature::CentroidSet& set) {
  if (set.extra.count(kOrder) == 0 && set.extra.count(kRhos) == 0) {
    return std::nullopt;
  }
  for (const char* key : {kOrder, kRhos}) {
    if (set.extra.count(key) == 0) {
      return not_a_record(key, fmt::format("missing; {} and {} go together", kOrder, kRhos));
    }
  }
  auto layers = list_of<std::int32_t>(set, kOrder, is_layer, "layer numbers");
  if (!layers) {
    return failure(layers.error());
  }
  auto rhos = list_of<double>(set, kRhos, is_rho, "numbers from -1 to 1");
  if (!rhos) {
    return failure(rhos.error());
  }
  if (rhos->size() != layers->size()) {
    return not_a_record(kRhos, fmt::format("{} numbers for {} layers", rhos->size(), layers->size()));
  }
  const std::vector<std::int32_t>& kept = set.spec.layers;
  if (kept.size() > layers->size() || !std::equal(kept.begin(), kept.end(), layers->begin())) {
    return not_a_record(kOrder, "does not begin with the layers that the file keeps");
  }
  auto held_out = held_out_of(set);
  if (!held_out) {
    return failure(held_out.error());
  }
  return SelectionRecord{std::move(*layers), std::move(*rhos), std::move(*held_out)};
}

}  // namespace eldr::calibrator

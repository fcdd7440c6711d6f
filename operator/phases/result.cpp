// SPDX-License-Identifier: Apache-2.0
#include "operator/phases/result.h"

#include "lib/base/digest.h"
#include "lib/kube/object.h"
#include "operator/api/labels.h"

namespace eldr::op {
namespace {

Json annotation_json(const Json& object, const char* name) {
  const auto text = kube::annotation_of(object, name);
  if (!text) return nullptr;
  Json value = Json::parse(*text, nullptr, false);
  return value.is_object() ? value : Json();
}

std::string text_of(const Json& object, const char* name) {
  return kube::annotation_of(object, name).value_or("");
}

}  // namespace

std::optional<Progress> progress_of(const Json& result_map) {
  const Json value = annotation_json(result_map, kProgressAnnotation);
  const std::string stage = kube::string_at(value, {"stage"}).substr(0, 64);
  if (stage.empty()) return {};
  const auto done = kube::int_at(value, {"done"});
  const auto total = kube::int_at(value, {"total"});
  if (!done || !total || *total <= 0) return Progress{stage, stage};
  return Progress{stage, std::to_string(*done) + "/" + std::to_string(*total)};
}

bool has_result(const Json& result_map) {
  return !kube::string_at(result_map, {"binaryData", kCentroidsKey}).empty();
}

bool is_published(const Json& result_map) {
  return has_result(result_map) && kube::bool_at(result_map, {"immutable"});
}

Result<signature::CentroidSet> read_centroids(const Json& result_map) {
  const auto bytes =
      base64_decode(kube::string_at(result_map, {"binaryData", kCentroidsKey}), signature::kMaxCentroidFile);
  if (!bytes) return failure(bytes.error().with_context(kCentroidsKey));
  auto set = signature::parse_centroids(*bytes);
  if (!set) return failure(set.error().with_context(kCentroidsKey));
  return set;
}

Status check_result(const Json& result_map, const CalibrationInputs& inputs, const std::string& model) {
  const auto set = read_centroids(result_map);
  if (!set) return failure(set.error());
  const auto differs = [](const std::string& what, const std::string& found, const std::string& wanted) {
    return failure(Code::kInvalid,
                   std::string(kCentroidsKey) + ": " + what + " is " + found + ", want " + wanted);
  };
  if (static_cast<std::int64_t>(set->clusters()) != inputs.pool_size)
    return differs("the number of clusters", std::to_string(set->clusters()),
                   std::to_string(inputs.pool_size));
  if (set->fit_hash != inputs.fit_hash)
    return differs("fit_hash", "\"" + set->fit_hash + "\"", inputs.fit_hash);
  if (!set->model.empty() && set->model != model) return differs("model", "\"" + set->model + "\"", model);
  return {};
}

Result<Json> publish(const kube::Client& client, const Json& result_map, Clock::Wall now) {
  return client.patch(
      kube::kConfigMaps, kube::key_of(result_map), kube::PatchType::kMerge,
      {{"metadata",
        {{"resourceVersion", kube::resource_version_of(result_map)},
         {"annotations", {{kPublishedAnnotation, format_rfc3339(now)}, {kProgressAnnotation, nullptr}}}}},
       {"immutable", true}});
}

PublishedConfig published_config(const Json& result_map) {
  PublishedConfig config;
  config.name = kube::object_name(result_map);
  config.fit_hash = text_of(result_map, kFitHashAnnotation);
  config.collect_hash = text_of(result_map, kCollectHashAnnotation);
  config.published_at = text_of(result_map, kPublishedAnnotation);
  config.summary = annotation_json(result_map, kSummaryAnnotation);
  config.parts = annotation_json(result_map, kInputsAnnotation);
  config.clusters = kube::int_at(config.parts, {"poolSize"}).value_or(0);
  config.object = result_map;
  return config;
}

}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/publish/publisher.h"

#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "lib/base/digest.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

constexpr int kTries = 5;
constexpr std::chrono::milliseconds kFirstPause{500};

bool is_immutable(const json& config_map) {
  const auto immutable = config_map.find("immutable");
  return immutable != config_map.end() && immutable->is_boolean() && immutable->get<bool>();
}

}  // namespace

Status Publisher::check(const std::stop_token& stop) const {
  const std::string name = "ConfigMap " + config_map_.to_string();
  for (int attempt = 1;; ++attempt) {
    const auto config_map = client_.get(kube::kConfigMaps, config_map_, {.stop = stop});
    if (config_map) {
      return is_immutable(*config_map)
                 ? failure(Code::kInvalid, name + " is immutable: a result is published already")
                 : Status();
    }
    // A role that was made a moment ago may not be in force yet.
    const bool passing = config_map.error().retryable() || config_map.error().code == Code::kForbidden;
    if (!passing || attempt == kTries || !sleeper_.sleep(kFirstPause * (1 << attempt), stop)) {
      return failure(config_map.error().with_context(name));
    }
  }
}

Status Publisher::publish(std::span<const std::byte> centroids, const json& summary,
                          const std::stop_token& stop) const {
  const json body = {{"metadata", {{"annotations", {{kSummaryAnnotation, summary.dump()}}}}},
                     {"binaryData", {{kCentroidsKey, base64_encode(centroids)}}}};
  for (int attempt = 1;; ++attempt) {
    const Status patched = patch(body, stop);
    if (patched || !patched.error().retryable() || attempt == kTries) {
      return patched;
    }
    spdlog::warn("publishing: {}; trying again", patched.error().message);
    const auto asked = std::chrono::seconds(patched.error().retry_after_seconds);
    if (!sleeper_.sleep(std::max<std::chrono::milliseconds>(asked, kFirstPause * (1 << attempt)), stop)) {
      return failure(Code::kCancelled, "stopped while publishing");
    }
  }
}

Status Publisher::annotate_progress(const json& progress, const std::stop_token& stop) const {
  return patch({{"metadata", {{"annotations", {{kProgressAnnotation, progress.dump()}}}}}}, stop);
}

Status Publisher::patch(const json& patch, const std::stop_token& stop) const {
  const auto patched =
      client_.patch(kube::kConfigMaps, config_map_, kube::PatchType::kMerge, patch, "", {.stop = stop});
  if (!patched) {
    return failure(patched.error().with_context("ConfigMap " + config_map_.to_string()));
  }
  return {};
}

}  // namespace eldr::calibrator

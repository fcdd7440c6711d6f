// SPDX-License-Identifier: Apache-2.0
// Hands the result and the progress to the operator, in one ConfigMap that it made before.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "calibrator/collect/sleeper.h"
#include "lib/base/status.h"
#include "lib/kube/client.h"

namespace eldr::calibrator {

inline constexpr const char* kProgressAnnotation = "eldr.dev/progress";
inline constexpr const char* kSummaryAnnotation = "eldr.dev/summary";
inline constexpr const char* kCentroidsKey = "centroids.safetensors";

/// Thread-safe. The client and the sleeper must outlive it.
class Publisher {
 public:
  Publisher(const kube::Client& client, kube::ObjectKey config_map, Sleeper& sleeper)
      : client_(client), config_map_(std::move(config_map)), sleeper_(sleeper) {}

  /// That the ConfigMap is there and not immutable: asked before any work. The error names what is missing.
  /// Asked up to five times while the API server is away or refuses: a new role takes a moment to be in
  /// force.
  Status check(const std::stop_token& stop) const;
  /// One merge patch: binaryData["centroids.safetensors"] and the annotation eldr.dev/summary. Tried again,
  /// up to five times, while the API server is away.
  Status publish(std::span<const std::byte> centroids, const nlohmann::json& summary,
                 const std::stop_token& stop) const;
  /// The annotation eldr.dev/progress; not tried again.
  Status annotate_progress(const nlohmann::json& progress, const std::stop_token& stop) const;

 private:
  Status patch(const nlohmann::json& patch, const std::stop_token& stop) const;

  const kube::Client& client_;
  kube::ObjectKey config_map_;
  Sleeper& sleeper_;
};

}  // namespace eldr::calibrator

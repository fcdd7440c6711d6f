// SPDX-License-Identifier: Apache-2.0
// The result of a calibration, as the ConfigMap holds it: reading, judging and publishing it.
#pragma once

#include <optional>

#include "lib/signature/centroids.h"
#include "operator/phases/scope.h"

namespace eldr::op {

/// What the calibrator says while it runs; see the annotation eldr.dev/progress.
struct Progress {
  std::string stage;
  std::string text;  ///< "420/1000", or the stage
};
std::optional<Progress> progress_of(const Json& result_map);

/// The calibrator has written its result.
bool has_result(const Json& result_map);
/// Published: has a result and is immutable.
bool is_published(const Json& result_map);

/// The centroids in a result. kInvalid says what is wrong.
Result<signature::CentroidSet> read_centroids(const Json& result_map);
/// The same, and they are the ones asked for: pool size, fit hash, model.
Status check_result(const Json& result_map, const CalibrationInputs& inputs, const std::string& model);

/// Makes the result immutable, provided that it is still what was read and checked (resourceVersion).
Result<Json> publish(const kube::Client& client, const Json& result_map, Clock::Wall now);

PublishedConfig published_config(const Json& result_map);

}  // namespace eldr::op

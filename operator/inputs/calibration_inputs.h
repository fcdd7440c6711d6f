// SPDX-License-Identifier: Apache-2.0
// What a calibration depends on, as two hashes: SHA-256 over canonical JSON (sorted keys, no spaces, UTF-8).
//
//   collect hash: all that decides the trace — model, data set, sample, seed, engine.
//   fit hash:     that, and all that decides the centroids — pool size, EP ranks, backend, calibrator image.
//
// Equal fit hashes mean that a published configuration can be used again; equal collect hashes that a cached
// trace can. Where something runs (resources, nodes, deadlines, queue, the engine's volumes) decides neither.
// The calibrator's image is no part of the collect hash: a new release of this project refits, and does not
// occupy GPUs for traces that it has.
//
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "operator/api/eldr_policy.h"

namespace eldr::op {

struct CalibrationInputs {
  std::int64_t pool_size = 0;
  std::string collect_hash;  ///< 64 hex digits
  std::string fit_hash;      ///< 64 hex digits
  /// Of the data set's content, where it is known: the Job checks that it reads what these hashes speak
  /// about.
  std::string dataset_sha256;
  /// Hash of each part, kept on the result to tell later what changed. Hashes, since an engine's environment
  /// may hold what should not be copied around.
  Json parts;

  /// First ten digits of the fit hash: the end of the names of the Job and of its result.
  std::string short_hash() const { return fit_hash.substr(0, 10); }
};

/// `dataset` identifies the content of the data set (see phases/dataset.h).
CalibrationInputs derive_inputs(const Spec& spec, const Json& dataset, std::int64_t pool_size,
                                const std::string& calibrator_image);

/// Why a calibration is needed, from the parts of the configuration in use (null: there is none) to the new
/// ones: FirstCalibration, ModelChanged, DatasetChanged, EngineChanged, SettingsChanged, PoolSizeChanged.
std::string calibration_reason(const Json& before, const Json& after);

/// SHA-256 of the canonical text, 64 hex digits.
std::string hash_of(const Json& value);

}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
#include "operator/inputs/calibration_inputs.h"

#include <utility>

#include "lib/base/digest.h"

namespace eldr::op {
namespace {

/// What of the engine decides the experts that it reports.
Json engine_identity(const Calibration& calibration) {
  if (!calibration.engine) return nullptr;
  if (calibration.engine->service) return {{"service", calibration.engine->service->url}};
  const EngineJob& job = *calibration.engine->job;
  return {{"image", job.image}, {"command", job.command}, {"args", job.args}, {"env", job.env}};
}

}  // namespace

std::string hash_of(const Json& value) {
  // nlohmann::json keeps members sorted and prints without spaces: that is the canonical form.
  return sha256_hex(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

CalibrationInputs derive_inputs(const Spec& spec, const Json& dataset, std::int64_t pool_size,
                                const std::string& calibrator_image) {
  const Json model = {{"name", spec.model.name}, {"revision", spec.model.revision}};
  const Json data = {{"source", dataset},
                     {"revision", spec.dataset.revision},
                     {"sampleSize", spec.dataset.sample_size},
                     {"decodeTokens", spec.dataset.decode_tokens},
                     {"seed", spec.calibration.fit.seed}};
  const Json engine = engine_identity(spec.calibration);
  const Json fit = {{"backend", spec.calibration.fit.backend},
                    {"expertParallelRanks", spec.decode.expert_parallel.ranks},
                    {"calibrator", calibrator_image}};
  CalibrationInputs inputs;
  inputs.pool_size = pool_size;
  inputs.dataset_sha256 = dataset.is_object() ? dataset.value("sha256", "") : "";
  inputs.parts = {{"model", hash_of(model)},
                  {"dataset", hash_of(data)},
                  {"engine", hash_of(engine)},
                  {"settings", hash_of(fit)},
                  {"poolSize", pool_size}};
  inputs.collect_hash = hash_of({{"version", 1}, {"model", model}, {"dataset", data}, {"engine", engine}});
  inputs.fit_hash =
      hash_of({{"version", 1}, {"collect", inputs.collect_hash}, {"fit", fit}, {"poolSize", pool_size}});
  return inputs;
}

std::string calibration_reason(const Json& before, const Json& after) {
  if (!before.is_object()) return "FirstCalibration";
  for (const auto& [part, name] : {std::pair{"model", "ModelChanged"},
                                   {"dataset", "DatasetChanged"},
                                   {"engine", "EngineChanged"},
                                   {"settings", "SettingsChanged"},
                                   {"poolSize", "PoolSizeChanged"}})
    if (before.value(part, Json()) != after.value(part, Json())) return name;
  return "ResultMissing";
}

}  // namespace eldr::op

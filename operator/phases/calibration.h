// SPDX-License-Identifier: Apache-2.0
// Phase 4: is there a published configuration for the present inputs? If not, run the Job that makes one.
//
//   published for these inputs ──yes──> good enough? ──yes──> routers should use it
//            │ no                            └──no───> RhoTooLow, routers keep what they have
//   pool size holds? ──no──> Stabilizing
//            │ yes
//   Job (its name is the inputs' hash) ── runs ──> Calibrating      ── failed ──> JobFailed
//            └── the result is in the ConfigMap ──> validate, make immutable: published
//
// The published ConfigMap, not the Job, is the record of completion.
#pragma once

#include "operator/phases/scope.h"

namespace eldr::op {

/// Fills scope.inputs, published, wanted_config and calibration; sets Calibrated.
void calibrate(Scope& scope);

}  // namespace eldr::op

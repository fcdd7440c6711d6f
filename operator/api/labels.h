// SPDX-License-Identifier: Apache-2.0
// Names of the labels and annotations that the operator reads and writes. Constants only.
#pragma once

namespace eldr::op {

// --- labels -----------------------------------------------------------------------------------------------
/// On every object that belongs to a policy: the policy's name. Watches select by it.
inline constexpr char kPolicyLabel[] = "eldr.dev/policy";
/// On a decode pod: its cluster id, an identity and not a row of the centroids (phases/cluster_ids.h).
inline constexpr char kClusterLabel[] = "eldr.dev/cluster";
inline constexpr char kNameLabel[] = "app.kubernetes.io/name";
inline constexpr char kInstanceLabel[] = "app.kubernetes.io/instance";
inline constexpr char kManagedByLabel[] = "app.kubernetes.io/managed-by";
inline constexpr char kPartOfLabel[] = "app.kubernetes.io/part-of";
inline constexpr char kManager[] = "eldr-operator";
/// Kueue's label: the LocalQueue of a Job.
inline constexpr char kQueueLabel[] = "kueue.x-k8s.io/queue-name";

// --- annotations of the result ConfigMap ------------------------------------------------------------------
inline constexpr char kFitHashAnnotation[] = "eldr.dev/fit-hash";          ///< all inputs
inline constexpr char kCollectHashAnnotation[] = "eldr.dev/collect-hash";  ///< inputs of the trace alone
inline constexpr char kInputsAnnotation[] = "eldr.dev/inputs";      ///< the inputs themselves, canonical JSON
inline constexpr char kProgressAnnotation[] = "eldr.dev/progress";  ///< written by the calibrator
inline constexpr char kSummaryAnnotation[] = "eldr.dev/summary";    ///< written by the calibrator
inline constexpr char kPublishedAnnotation[] = "eldr.dev/published-at";
inline constexpr char kCentroidsKey[] = "centroids.safetensors";  ///< key in binaryData

// --- annotations of Jobs, Deployments and other children --------------------------------------------------
/// Hash of the intent that was applied last: tells a removed field, which the object itself cannot show.
inline constexpr char kIntentAnnotation[] = "eldr.dev/intent-hash";
/// On a Job: it is suspended by spec.calibration.suspend and not by a queue.
inline constexpr char kSuspendedAnnotation[] = "eldr.dev/suspended-by-policy";
/// On the router's Deployment and on its pod template.
inline constexpr char kTemplateAnnotation[] = "eldr.dev/template-hash";
inline constexpr char kCentroidsAnnotation[] = "eldr.dev/centroids";         ///< ConfigMap name
inline constexpr char kRouterConfigAnnotation[] = "eldr.dev/router-config";  ///< ConfigMap name
/// On the router's Deployment: the template that was rolled out completely last, and the one that failed to.
inline constexpr char kLastGoodAnnotation[] = "eldr.dev/last-good-template";
inline constexpr char kFailedAnnotation[] = "eldr.dev/failed-template";
/// Why kFailedAnnotation's template failed, for the condition after the roll-back.
inline constexpr char kFailureAnnotation[] = "eldr.dev/failed-because";

// --- names ------------------------------------------------------------------------------------------------
inline constexpr char kFieldManager[] = "eldr-operator";
inline constexpr char kStatusFieldManager[] = "eldr-operator-status";
inline constexpr char kCalibrateContainer[] = "calibrate";
inline constexpr char kEngineContainer[] = "engine";
inline constexpr char kRouterContainer[] = "router";

}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
// Condition types and reasons of an EldrPolicy. Each constant is documented here and, with what to do about
// it, in docs/reference/conditions.md; a test holds the page to this list and another reaches each reason.
#pragma once

#include <array>
#include <string_view>

namespace eldr::op {

// --- types, in the order in which they depend on each other -----------------------------------------------
/// The spec can be worked with.
inline constexpr char kAccepted[] = "Accepted";
/// The calibration data can be had and looks right.
inline constexpr char kDatasetAvailable[] = "DatasetAvailable";
/// The scale target exists and both pools have Ready pods.
inline constexpr char kWorkersAvailable[] = "WorkersAvailable";
/// A published configuration exists for exactly the present inputs and is good enough.
inline constexpr char kCalibrated[] = "Calibrated";
/// All routers run with the configuration that is wanted.
inline constexpr char kRouterUpdated[] = "RouterUpdated";
/// Summary: all of the above.
inline constexpr char kReady[] = "Ready";

inline constexpr std::array<std::string_view, 6> kConditionTypes = {
    kAccepted, kDatasetAvailable, kWorkersAvailable, kCalibrated, kRouterUpdated, kReady};

namespace reason {

// Accepted
inline constexpr char kSpecAccepted[] = "SpecAccepted";  ///< True
inline constexpr char kInvalidSpec[] = "InvalidSpec";    ///< False: the message names each wrong field

// Any type
inline constexpr char kNotEvaluated[] = "NotEvaluated";  ///< Unknown: something before it is missing
inline constexpr char kApiError[] = "ApiError";  ///< Unknown: the API server did not answer; tried again

// DatasetAvailable
inline constexpr char kDatasetFound[] = "DatasetFound";            ///< True
inline constexpr char kConfigMapNotFound[] = "ConfigMapNotFound";  ///< False
inline constexpr char kKeyNotFound[] = "KeyNotFound";              ///< False: the ConfigMap lacks the key
inline constexpr char kDatasetInvalid[] = "DatasetInvalid";        ///< False: the content is not prompts
inline constexpr char kClaimNotFound[] = "ClaimNotFound";          ///< False: no such PersistentVolumeClaim

// WorkersAvailable
inline constexpr char kWorkersReady[] = "WorkersReady";                ///< True
inline constexpr char kWorkersPartlyReady[] = "WorkersPartlyReady";    ///< True: some are not Ready
inline constexpr char kScaleTargetNotFound[] = "ScaleTargetNotFound";  ///< False
inline constexpr char kScaleTargetUnsupported[] =
    "ScaleTargetUnsupported";                              ///< False: no scale or no such kind
inline constexpr char kScaleRejected[] = "ScaleRejected";  ///< False: the target cannot be scaled
inline constexpr char kPoolEmpty[] = "PoolEmpty";          ///< False: scaled to zero
inline constexpr char kPoolTooLarge[] = "PoolTooLarge";    ///< False: more than can be clustered
inline constexpr char kDecodeWorkersNotReady[] = "DecodeWorkersNotReady";    ///< False: not one is Ready
inline constexpr char kPrefillWorkersNotReady[] = "PrefillWorkersNotReady";  ///< False: not one is Ready

// Calibrated
inline constexpr char kPublished[] = "Published";                  ///< True
inline constexpr char kWaitingForDataset[] = "WaitingForDataset";  ///< False
inline constexpr char kWaitingForWorkers[] =
    "WaitingForWorkers";                               ///< False: pool size unknown, zero or too large
inline constexpr char kStabilizing[] = "Stabilizing";  ///< False: the pool size changed just now
inline constexpr char kSuspended[] = "Suspended";      ///< False: spec.calibration.suspend
inline constexpr char kQueued[] = "Queued";            ///< False: waits for a queue to admit the Job
inline constexpr char kCalibrating[] = "Calibrating";  ///< False: the Job runs
inline constexpr char kJobFailed[] = "JobFailed";      ///< False: the message has its exit code and words
inline constexpr char kJobRejected[] =
    "JobRejected";  ///< False: the API server refused the Job or a part of it
inline constexpr char kResultInvalid[] = "ResultInvalid";  ///< False: no result, or one that cannot be used
inline constexpr char kRhoTooLow[] = "RhoTooLow";          ///< False: under spec.calibration.minimumRho

// RouterUpdated
inline constexpr char kRolledOut[] = "RolledOut";    ///< True
inline constexpr char kRollingOut[] = "RollingOut";  ///< False
inline constexpr char kRolledBack[] = "RolledBack";  ///< False: missed its deadline; the last good one serves
inline constexpr char kRolloutFailed[] =
    "RolloutFailed";  ///< False: missed its deadline; there is no good one yet
inline constexpr char kRouterRejected[] =
    "RouterRejected";  ///< False: the API server refused a part of the router

// Ready: the first condition that does not hold lends its reason; else
inline constexpr char kAllReady[] = "AllReady";  ///< True

inline constexpr std::array<std::string_view, 35> kAll = {kSpecAccepted,
                                                          kInvalidSpec,
                                                          kNotEvaluated,
                                                          kApiError,
                                                          kDatasetFound,
                                                          kConfigMapNotFound,
                                                          kKeyNotFound,
                                                          kDatasetInvalid,
                                                          kClaimNotFound,
                                                          kWorkersReady,
                                                          kWorkersPartlyReady,
                                                          kScaleTargetNotFound,
                                                          kScaleTargetUnsupported,
                                                          kScaleRejected,
                                                          kPoolEmpty,
                                                          kPoolTooLarge,
                                                          kDecodeWorkersNotReady,
                                                          kPrefillWorkersNotReady,
                                                          kPublished,
                                                          kWaitingForDataset,
                                                          kWaitingForWorkers,
                                                          kStabilizing,
                                                          kSuspended,
                                                          kQueued,
                                                          kCalibrating,
                                                          kJobFailed,
                                                          kJobRejected,
                                                          kResultInvalid,
                                                          kRhoTooLow,
                                                          kRolledOut,
                                                          kRollingOut,
                                                          kRolledBack,
                                                          kRolloutFailed,
                                                          kRouterRejected,
                                                          kAllReady};

}  // namespace reason
}  // namespace eldr::op

// SPDX-License-Identifier: Apache-2.0
// From an API server's answer to an Error of ours. Pure; thread-safe.
#pragma once

#include "lib/base/status.h"
#include "lib/kube/json.h"
#include "lib/kube/transport.h"

namespace eldr::kube {

/// `what` says what was tried: "get configmaps serving/prompts". The Status object's reason decides first
/// (AlreadyExists and Conflict are both 409), then the HTTP status:
///   400, 405, 406, 413, 415, 422 and other 4xx kInvalid · 401 kUnauthorized · 403 kForbidden · 404 kNotFound
///   · 409 kConflict or kAlreadyExists · 410 kExpired · 429 kThrottled · 408, 504 kTimeout · 5xx kUnavailable
/// The message carries the server's own and, for 422, every cause's field and text. Retry-After and
/// details.retryAfterSeconds become retry_after_seconds. A 403 that says the namespace is terminating stays
/// kForbidden.
Error error_from_response(const HttpResponse& response, std::string_view what);
/// The same for a Status object, as it comes in a watch's ERROR event.
Error error_from_status(const Json& status, std::string_view what);

}  // namespace eldr::kube

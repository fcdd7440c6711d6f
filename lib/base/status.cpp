// SPDX-License-Identifier: Apache-2.0
#include "lib/base/status.h"

namespace eldr {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kInvalid:
      return "Invalid";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kConflict:
      return "Conflict";
    case Code::kExpired:
      return "Expired";
    case Code::kThrottled:
      return "Throttled";
    case Code::kUnauthorized:
      return "Unauthorized";
    case Code::kForbidden:
      return "Forbidden";
    case Code::kTimeout:
      return "Timeout";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kResourceExhausted:
      return "ResourceExhausted";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kInternal:
      return "Internal";
  }
  return "Unknown";
}

bool Error::retryable() const {
  switch (code) {
    case Code::kConflict:
    case Code::kExpired:
    case Code::kThrottled:
    case Code::kTimeout:
    case Code::kUnavailable:
      return true;
    default:
      return false;
  }
}

std::string Error::to_string() const { return std::string(name_of(code)) + ": " + message; }

Error Error::with_context(std::string_view context) const {
  return Error{code, std::string(context) + ": " + message, retry_after_seconds};
}

}  // namespace eldr

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/api_error.h"

#include <algorithm>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "lib/kube/object.h"

namespace eldr::kube {
namespace {

constexpr std::size_t kLongestMessage = 2048;

std::optional<Code> code_of_reason(const std::string& reason) {
  struct Known {
    const char* reason;
    Code code;
  };
  static constexpr Known kKnown[] = {
      {"AlreadyExists", Code::kAlreadyExists},
      {"Conflict", Code::kConflict},
      {"Expired", Code::kExpired},
      {"Gone", Code::kExpired},
      {"NotFound", Code::kNotFound},
      {"Unauthorized", Code::kUnauthorized},
      {"Forbidden", Code::kForbidden},
      {"Invalid", Code::kInvalid},
      {"BadRequest", Code::kInvalid},
      {"MethodNotAllowed", Code::kInvalid},
      {"NotAcceptable", Code::kInvalid},
      {"UnsupportedMediaType", Code::kInvalid},
      {"RequestEntityTooLarge", Code::kInvalid},
      {"TooManyRequests", Code::kThrottled},
      {"Timeout", Code::kTimeout},
      {"ServerTimeout", Code::kTimeout},
      {"ServiceUnavailable", Code::kUnavailable},
      {"InternalError", Code::kUnavailable},
  };
  for (const Known& known : kKnown) {
    if (reason == known.reason) {
      return known.code;
    }
  }
  return std::nullopt;
}

Code code_of_http_status(std::int64_t status) {
  switch (status) {
    case 401:
      return Code::kUnauthorized;
    case 403:
      return Code::kForbidden;
    case 404:
      return Code::kNotFound;
    case 408:
    case 504:
      return Code::kTimeout;
    case 409:
      return Code::kConflict;
    case 410:
      return Code::kExpired;
    case 429:
      return Code::kThrottled;
    default:
      break;
  }
  if (status >= 500) {
    return Code::kUnavailable;
  }
  return status >= 400 ? Code::kInvalid : Code::kInternal;
}

std::string cut(std::string text) {
  if (text.size() > kLongestMessage) {
    text.resize(kLongestMessage);
    text += " …";
  }
  return text;
}

}  // namespace

Error error_from_status(const Json& status, std::string_view what) {
  const auto http_status = int_at(status, {"code"}).value_or(0);
  Error error;
  error.code = code_of_reason(string_at(status, {"reason"})).value_or(code_of_http_status(http_status));
  std::string message = string_at(status, {"message"});
  if (message.empty()) {
    message = "HTTP status " + std::to_string(http_status);
  }
  // A 422's message names each field already; other errors keep their causes apart.
  if (const Json* causes = find(status, {"details", "causes"}); causes != nullptr && causes->is_array()) {
    for (const Json& cause : *causes) {
      const std::string text = string_at(cause, {"message"});
      if (!text.empty() && message.find(text) == std::string::npos) {
        message += "; " + string_at(cause, {"field"}) + ": " + text;
      }
    }
  }
  error.message = cut(std::string(what) + ": " + message);
  error.retry_after_seconds = static_cast<int>(
      std::clamp<std::int64_t>(int_at(status, {"details", "retryAfterSeconds"}).value_or(0), 0, 3600));
  return error;
}

Error error_from_response(const HttpResponse& response, std::string_view what) {
  const Json status = Json::parse(response.body, nullptr, false);
  Error error;
  if (status.is_object() && string_at(status, {"kind"}) == "Status") {
    error = error_from_status(status, what);
    if (!code_of_reason(string_at(status, {"reason"}))) {
      error.code = code_of_http_status(response.status);
    }
  } else {
    error.code = code_of_http_status(response.status);
    error.message = cut(std::string(what) + ": HTTP status " + std::to_string(response.status) +
                        (response.body.empty() ? "" : ": " + response.body.substr(0, 256)));
  }
  error.retry_after_seconds = std::max(error.retry_after_seconds, response.retry_after_seconds);
  return error;
}

}  // namespace eldr::kube

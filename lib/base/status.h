// SPDX-License-Identifier: Apache-2.0
// Errors as values. Every fallible function of the project returns Result<T>; exceptions of libraries stop at
// their wrapper.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace eldr {

/// Few codes, each with a meaning to the caller: what to do next, not what went wrong inside.
enum class Code {
  kInvalid,            ///< the input is wrong and will be wrong next time
  kNotFound,           ///< the thing named does not exist
  kAlreadyExists,      ///< a create met an object of that name
  kConflict,           ///< a precondition (resource version, uid, field manager) failed: read again
  kExpired,            ///< a resource version or a continue token is too old: list again
  kThrottled,          ///< the other side asks to slow down
  kUnauthorized,       ///< credentials missing or refused (401)
  kForbidden,          ///< credentials good, right missing (403)
  kTimeout,            ///< a deadline passed
  kUnavailable,        ///< connection refused, reset, 5xx: try again later
  kResourceExhausted,  ///< a limit of ours (size, count, memory, disk) was met
  kCancelled,          ///< shutting down
  kInternal,           ///< a bug here or a broken answer there
};

/// The code's name as it appears in logs, e.g. "NotFound".
std::string_view name_of(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;          ///< for people; names the field, the value and what is allowed
  int retry_after_seconds = 0;  ///< > 0 where the other side said so

  /// Whether the same call may succeed later without anybody changing anything.
  bool retryable() const;
  /// "NotFound: configmaps \"prompts\" not found"
  std::string to_string() const;
  /// The same error with `context` and ": " before its message.
  Error with_context(std::string_view context) const;
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> failure(Code code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), 0});
}
inline tl::unexpected<Error> failure(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace eldr

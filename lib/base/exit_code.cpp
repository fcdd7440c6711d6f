// SPDX-License-Identifier: Apache-2.0
#include "lib/base/exit_code.h"

namespace eldr {

ExitCode exit_code_for(const Error& error) {
  switch (error.code) {
    case Code::kInvalid:
      return kExitBadData;
    case Code::kNotFound:
      return kExitNoInput;
    case Code::kUnauthorized:
    case Code::kForbidden:
      return kExitConfig;
    case Code::kTimeout:
    case Code::kUnavailable:
      return kExitUnavailable;
    case Code::kConflict:
    case Code::kExpired:
    case Code::kThrottled:
    case Code::kResourceExhausted:
    case Code::kCancelled:
      return kExitTryAgain;
    case Code::kAlreadyExists:
    case Code::kInternal:
      return kExitBug;
  }
  return kExitBug;
}

}  // namespace eldr

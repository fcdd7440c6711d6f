// SPDX-License-Identifier: Apache-2.0
// The bearer token of each request. A token file (a pod's projected service account token is rotated under
// us) is read again when what we read is older than a minute. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/status.h"
#include "lib/kube/config.h"

namespace eldr::kube {

class TokenSource {
 public:
  TokenSource(const Config& config, std::chrono::seconds refresh, const Clock& clock)
      : token_(config.token), file_(config.token_file), refresh_(refresh), clock_(clock) {}

  /// "" when there is none. A file that cannot be read is an error only while nothing was ever read from it.
  Result<std::string> token();
  /// The server refused it (401): read the file again at the next call.
  void distrust();

 private:
  std::mutex mutex_;
  std::string token_;
  const std::string file_;
  const std::chrono::seconds refresh_;
  const Clock& clock_;
  bool fresh_ = false;
  Clock::Steady read_at_{};
};

}  // namespace eldr::kube

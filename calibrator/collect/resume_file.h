// SPDX-License-Identifier: Apache-2.0
// What was collected so far, so that a crash or a restart repeats no finished request: JSON lines, the first
// says whose they are, each other one is a request. A torn last line is ignored.
#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "calibrator/collect/routed_experts.h"
#include "lib/base/status.h"

namespace eldr::calibrator {

/// Thread-safe.
class ResumeFile {
 public:
  /// Reads what is there and opens it for more. `identity` names the inputs: what a file with another
  /// identity, or another number of requests, holds is thrown away. kResourceExhausted, kUnavailable: it
  /// cannot be written.
  static Result<std::unique_ptr<ResumeFile>> open(const std::string& path, const std::string& identity,
                                                  std::size_t requests);

  /// Results of an earlier run by request number; taken once.
  std::vector<std::optional<RequestCounts>> take_finished() { return std::move(finished_); }
  Status append(std::size_t request, const RequestCounts& counts);
  /// Deletes it: the trace is saved.
  void remove();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::mutex mutex_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<std::optional<RequestCounts>> finished_;
};

}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
// Runs a sample of prompts through an engine: waits for it, keeps a bounded number of requests in flight,
// tries again what may pass, gives up when the engine is gone.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "calibrator/collect/engine_client.h"
#include "calibrator/collect/resume_file.h"
#include "calibrator/collect/sleeper.h"
#include "calibrator/failure.h"
#include "calibrator/progress/progress.h"
#include "lib/base/clock.h"

namespace eldr::calibrator {

struct CollectorOptions {
  unsigned concurrency = 16;
  unsigned retries = 5;  ///< further tries for one request
  std::chrono::seconds engine_wait{1800};
  std::chrono::milliseconds first_backoff{500};  ///< doubled for each further try, half of it drawn
  std::chrono::milliseconds longest_backoff{30000};
  std::uint64_t seed = 0;  ///< of the back-off's jitter
};

/// References must outlive it. One collect() at a time.
class Collector {
 public:
  Collector(const EngineClient& engine, CollectorOptions options, Progress& progress, const Clock& clock,
            Sleeper& sleeper)
      : engine_(engine), options_(options), progress_(progress), clock_(clock), sleeper_(sleeper) {}

  /// Until /health answers 200. Exit code 69 when it does not within engine_wait.
  Outcome wait_for_engine(const std::stop_token& stop);

  /// Counts of each prompt, in order; nullopt: the engine refused that prompt (over 5 % of those: exit code
  /// 65). `resume` may be null; finished requests in it are not repeated and new ones are appended.
  tl::expected<std::vector<std::optional<RequestCounts>>, Failure> collect(const std::vector<Prompt>& prompts,
                                                                           ResumeFile* resume,
                                                                           const std::stop_token& stop);

 private:
  tl::expected<RequestCounts, RequestFailure> run_with_retries(const Prompt& prompt, std::size_t index,
                                                               class AdaptiveLimit& limit,
                                                               const std::stop_token& stop);

  const EngineClient& engine_;
  CollectorOptions options_;
  Progress& progress_;
  const Clock& clock_;
  Sleeper& sleeper_;
};

}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/collector.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "calibrator/collect/adaptive_limit.h"
#include "calibrator/dataset/sampler.h"
#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

using Kind = RequestFailure::Kind;
using Counts = std::vector<std::optional<RequestCounts>>;

constexpr std::chrono::milliseconds kHealthPoll{1000};

tl::unexpected<Failure> stopped() { return fail({Code::kCancelled, "stopped while collecting", 0}); }

/// What the worker threads of one collect() share.
struct Shared {
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  std::atomic<std::size_t> refused{0};
  std::mutex mutex;
  std::optional<Failure> failure;  ///< the first that ends everything
  std::stop_source stop;           ///< requested by a failure, or from outside
  Failure out_of_memory{
      {Code::kResourceExhausted,
       "out of memory while collecting: use a smaller --concurrency or --sample-size, or give "
       "the process more",
       0},
      kExitTryAgain};  ///< made while there is memory to make it

  void end_with(Failure reason) {
    {
      const std::lock_guard lock(mutex);
      if (!failure) {
        failure = std::move(reason);
      }
    }
    stop.request_stop();
  }
};

/// Runs `work` on that many threads, the caller's among them, or on as many as there is room for.
void run_on_threads(std::size_t threads, const std::function<void()>& work) {
  std::vector<std::jthread> others;
  others.reserve(threads);
  try {
    while (others.size() + 1 < threads) {
      others.emplace_back(work);
    }
  } catch (const std::system_error& error) {
    spdlog::warn("{} threads instead of {}: {}", others.size() + 1, threads, error.what());
  }
  work();
}

}  // namespace

Outcome Collector::wait_for_engine(const std::stop_token& stop) {
  const auto deadline = clock_.steady() + options_.engine_wait;
  progress_.update(Stage::kWaiting, 0, 0);
  for (;;) {
    const Status health = engine_.health(stop);
    if (health) {
      return {};
    }
    if (stop.stop_requested()) {
      return fail({Code::kCancelled, "stopped while waiting for the engine", 0});
    }
    if (health.error().code == Code::kInvalid) {
      return fail(health.error().with_context("engine"), kExitConfig);
    }
    if (clock_.steady() >= deadline) {
      return fail({Code::kUnavailable,
                   fmt::format("engine is not healthy after {} s: {}", options_.engine_wait.count(),
                               health.error().message),
                   0});
    }
    progress_.update(Stage::kWaiting, 0, 0);
    sleeper_.sleep(kHealthPoll, stop);
  }
}

tl::expected<RequestCounts, RequestFailure> Collector::run_with_retries(const Prompt& prompt,
                                                                        std::size_t index,
                                                                        AdaptiveLimit& limit,
                                                                        const std::stop_token& stop) {
  Random random(options_.seed, index);
  for (unsigned attempt = 0;; ++attempt) {
    if (!limit.acquire(stop)) {
      return tl::unexpected<RequestFailure>({Kind::kStopped, stopped().value(), false, 0});
    }
    auto counts = engine_.run(prompt, stop);
    limit.release(!counts && counts.error().overloaded);
    if (counts || counts.error().kind != Kind::kRetry || attempt >= options_.retries) {
      return counts;
    }
    const auto backoff =
        std::min(options_.longest_backoff, options_.first_backoff * (1U << std::min(attempt, 16U)));
    const auto drawn = std::chrono::milliseconds(
        static_cast<std::int64_t>(static_cast<double>(backoff.count()) * (0.5 + random.uniform() / 2)));
    const auto asked = std::chrono::milliseconds(1000LL * counts.error().retry_after_seconds);
    spdlog::debug("request {}: {}; trying again", index, counts.error().failure.error.message);
    sleeper_.sleep(std::max(drawn, asked), stop);
  }
}

tl::expected<Counts, Failure> Collector::collect(const std::vector<Prompt>& prompts, ResumeFile* resume,
                                                 const std::stop_token& stop) {
  Counts results = resume != nullptr ? resume->take_finished() : Counts(prompts.size());
  Shared shared;
  const std::stop_callback from_outside(stop, [&] { shared.stop.request_stop(); });
  const std::size_t resumed = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const auto& result) { return result.has_value(); }));
  if (resumed > 0) {
    spdlog::info("{} of {} requests were collected before and are not repeated", resumed, prompts.size());
  }
  shared.done = resumed;
  progress_.update(Stage::kCollecting, resumed, prompts.size());
  AdaptiveLimit limit(options_.concurrency);

  const auto run_prompts = [&] {
    const std::stop_token over = shared.stop.get_token();
    for (std::size_t i = shared.next++; i < prompts.size() && !over.stop_requested(); i = shared.next++) {
      if (results[i]) {
        continue;
      }
      auto counts = run_with_retries(prompts[i], i, limit, over);
      if (!counts) {
        const RequestFailure& failed = counts.error();
        if (failed.kind == Kind::kStopped) {
          return;
        }
        if (failed.kind != Kind::kBadPrompt) {
          shared.end_with(
              {failed.failure.error.with_context(fmt::format("data set line {}", prompts[i].line)),
               failed.failure.exit});
          return;
        }
        spdlog::warn("data set line {}: {}; left out", prompts[i].line, failed.failure.error.message);
        const std::size_t refused = ++shared.refused;
        if (static_cast<double>(refused) > kMaxBadShare * static_cast<double>(prompts.size())) {
          shared.end_with(
              {{Code::kInvalid,
                fmt::format("the engine refused {} of {} prompts, more than {:.0f} %; line {}: {}", refused,
                            prompts.size(), 100 * kMaxBadShare, prompts[i].line,
                            failed.failure.error.message),
                0},
               kExitBadData});
          return;
        }
      } else {
        if (resume != nullptr) {
          if (const Status saved = resume->append(i, *counts); !saved) {
            shared.end_with({saved.error(), exit_code_for(saved.error())});
            return;
          }
        }
        results[i] = std::move(*counts);  // no other thread touches this slot
      }
      progress_.update(Stage::kCollecting, ++shared.done, prompts.size());
    }
  };
  const auto work = [&] {
    try {
      run_prompts();
    } catch (const std::bad_alloc&) {
      shared.end_with(std::move(shared.out_of_memory));
    } catch (const std::exception& error) {
      shared.end_with({{Code::kInternal, error.what(), 0}, kExitBug});
    }
  };
  run_on_threads(std::min<std::size_t>(options_.concurrency, prompts.size() - resumed), work);
  if (shared.failure) {
    return tl::unexpected(*shared.failure);
  }
  if (stop.stop_requested()) {
    return stopped();
  }
  return results;
}

}  // namespace eldr::calibrator

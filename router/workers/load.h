// SPDX-License-Identifier: Apache-2.0
// How busy a decode worker is, as this router sees it: its own requests, known exactly at any instant, plus
// what the worker's metrics showed beyond them at the last poll (other routers' requests).
//
// So a router alone is exact however old the poll is, and with several a poll's age costs only what the
// others changed since.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "lib/base/clock.h"

namespace eldr::router {

/// Thread-safe.
class Load {
 public:
  /// A poll older than this is forgotten: the worker's metrics cannot be read any more.
  static constexpr std::chrono::seconds kPollLifetime{5};

  void began() { own_.fetch_add(1, std::memory_order_relaxed); }
  void ended() { own_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint32_t own() const { return own_.load(std::memory_order_relaxed); }

  std::uint32_t others() const { return others_.load(std::memory_order_relaxed); }

  /// The worker reported `running + waiting` requests. `own_before` is own() when the poll was sent; a
  /// request that began or ended meanwhile is taken for the router's own, never counted twice.
  void polled(std::uint32_t reported, std::uint32_t own_before, Clock::Steady now);

  /// Own requests plus what the last poll showed beyond them.
  std::uint32_t total(Clock::Steady now) const;

 private:
  std::atomic<std::uint32_t> own_{0};
  std::atomic<std::uint32_t> others_{0};
  std::atomic<Clock::Steady::rep> polled_at_{0};
};

/// vllm:num_requests_running + vllm:num_requests_waiting of a metrics page in the Prometheus text format,
/// summed over engines (label sets); nullopt when neither is there.
std::optional<std::uint32_t> requests_in_metrics(std::string_view page);

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
#include "router/workers/load.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace eldr::router {
namespace {

/// The value of a sample line "name{labels} value [timestamp]" if its name is `name`.
std::optional<double> sample_of(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (line.starts_with('{')) {
    const auto end = line.rfind('}');  // label values may hold braces
    if (end == std::string_view::npos) return std::nullopt;
    line.remove_prefix(end + 1);
  }
  if (!line.starts_with(' ')) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  double value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0 || value > 1e9) return std::nullopt;
  return value;
}

}  // namespace

void Load::polled(std::uint32_t reported, std::uint32_t own_before, Clock::Steady now) {
  const std::uint32_t mine = std::max(own_before, own());
  others_.store(reported > mine ? reported - mine : 0, std::memory_order_relaxed);
  polled_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

std::uint32_t Load::total(Clock::Steady now) const {
  const auto others = others_.load(std::memory_order_relaxed);
  if (others == 0) return own();
  const Clock::Steady at{Clock::Steady::duration(polled_at_.load(std::memory_order_relaxed))};
  return own() + (now - at > kPollLifetime ? 0 : others);
}

std::optional<std::uint32_t> requests_in_metrics(std::string_view page) {
  double sum = 0;
  bool found = false;
  while (!page.empty()) {
    const auto end = std::min(page.find('\n'), page.size());
    const auto line = page.substr(0, end);
    for (const auto* name : {"vllm:num_requests_running", "vllm:num_requests_waiting"}) {
      if (const auto value = sample_of(line, name)) {
        sum += *value;
        found = true;
      }
    }
    page.remove_prefix(std::min(end + 1, page.size()));
  }
  if (!found) return std::nullopt;
  return static_cast<std::uint32_t>(sum);
}

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/stats.h"

#include <nlohmann/json.hpp>

namespace eldr::sim {
namespace {

double seconds(Clock::Steady from, Clock::Steady to) {
  return std::chrono::duration<double>(to - from).count();
}

nlohmann::json mean(double sum, std::uint64_t n) {
  return n == 0 ? nlohmann::json(nullptr) : nlohmann::json(sum / static_cast<double>(n));
}

}  // namespace

LabelStats::Sums& LabelStats::sums_of(const std::string& label) {
  if (by_label_.size() >= kMostLabels && by_label_.count(label) == 0) {
    return by_label_["(other)"];
  }
  return by_label_[label];
}

void LabelStats::on_step(std::size_t /*running*/, std::size_t decoding, double distinct) {
  if (decoding == 0) {
    return;
  }
  const std::lock_guard lock(mutex_);
  ++steps_;
  decoding_ += decoding;
  distinct_ += distinct;
}

void LabelStats::on_token(const Sequence& sequence, Clock::Steady /*now*/, bool decoded, double distinct) {
  const std::lock_guard lock(mutex_);
  for (Sums* sums : {&all_, &sums_of(sequence.label)}) {
    ++sums->tokens;
    if (decoded) {
      ++sums->decode_tokens;
      sums->distinct += distinct;
    }
  }
}

void LabelStats::on_finished(const Sequence& sequence, Clock::Steady now) {
  const std::lock_guard lock(mutex_);
  for (Sums* sums : {&all_, &sums_of(sequence.label)}) {
    ++sums->requests;
    if (sequence.made > 1) {
      ++sums->timed_requests;
      sums->seconds_per_token += seconds(sequence.first_token, now) / (sequence.made - 1);
    }
  }
}

void LabelStats::count(const std::string& event) {
  const std::lock_guard lock(mutex_);
  ++events_[event];
}

void LabelStats::reset() {
  const std::lock_guard lock(mutex_);
  by_label_.clear();
  events_.clear();
  all_ = {};
  steps_ = decoding_ = 0;
  distinct_ = 0;
}

nlohmann::json LabelStats::json_of(const Sums& sums) {
  return {{"requests", sums.requests},
          {"tokens", sums.tokens},
          {"decode_tokens", sums.decode_tokens},
          {"active_experts", mean(sums.distinct, sums.decode_tokens)},
          {"timed_requests", sums.timed_requests},
          {"time_per_output_token_ms", mean(sums.seconds_per_token * 1000, sums.timed_requests)}};
}

nlohmann::json LabelStats::to_json() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json json = json_of(all_);
  // Nobody averages over nothing: a worker without tokens has weight 0 in every mean of the pool.
  if (all_.decode_tokens == 0) {
    json["active_experts"] = 0.0;
  }
  json["steps"] = steps_;
  json["batch"] = mean(static_cast<double>(decoding_), steps_);
  json["active_experts_per_step"] = mean(distinct_, steps_);
  json["by_label"] = nlohmann::json::object();
  for (const auto& [label, sums] : by_label_) {
    json["by_label"][label] = json_of(sums);
  }
  json["events"] = events_;
  return json;
}

}  // namespace eldr::sim

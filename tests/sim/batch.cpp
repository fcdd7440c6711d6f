// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/batch.h"

#include <algorithm>
#include <bit>

namespace eldr::sim {
namespace {

// The first token of a prompt computed here comes out of the prefill itself.
bool decodes(const Sequence& s) { return s.made > 0 || s.remote_prefill; }

}  // namespace

Batch::Batch(const ModelShape& shape, const CostModel& cost, const BatchLimits& limits, KvPool& pool)
    : shape_(shape),
      cost_(cost),
      limits_(limits),
      pool_(pool),
      picks_(shape.picks()),
      active_(shape.layer_count() * ((shape.experts + 63) / 64)) {}

bool Batch::submit(std::shared_ptr<Sequence> sequence) {
  if (waiting_.size() >= limits_.max_waiting) {
    return false;
  }
  waiting_.push_back(std::move(sequence));
  return true;
}

double Batch::begin_step() {
  drop_cancelled();
  const double prefill_us = admit();
  if (running_.empty()) {
    return 0;
  }
  return (prefill_us + draw_decode_tokens()) * cost_.time_scale;
}

void Batch::end_step(Clock::Steady now, Stats& stats) {
  stats.on_step(running_.size(), decoding_, distinct_);
  for (const auto& s : running_) {
    const bool decoded = decodes(*s);
    ++s->made;
    if (s->made == 1) {
      s->first_token = now;
    }
    stats.on_token(*s, now, decoded, distinct_);
    s->last_token = now;
    if (s->made == s->output_tokens) {
      stats.on_finished(*s, now);
      leave(*s);
    }
    s->progress->advance(s->index);
  }
  std::erase_if(running_, [](const auto& s) { return s->made == s->output_tokens; });
}

void Batch::fail_all() {
  for (const auto& s : running_) {
    s->keeps_blocks = false;
    leave(*s);
    s->progress->fail();
  }
  for (const auto& s : waiting_) {
    s->progress->fail();
  }
  running_.clear();
  waiting_.clear();
}

void Batch::drop_cancelled() {
  for (const auto& s : running_) {
    if (s->cancelled) {
      s->keeps_blocks = false;
      leave(*s);
    }
  }
  std::erase_if(running_, [](const auto& s) { return s->cancelled.load(); });
  std::erase_if(waiting_, [](const auto& s) { return s->cancelled.load(); });
}

void Batch::leave(Sequence& sequence) {
  const std::uint32_t kept = sequence.keeps_blocks ? blocks_for(sequence.prompt_tokens) : 0;
  pool_.release(sequence.reserved_blocks - std::min(kept, sequence.reserved_blocks));
  sequence.reserved_blocks = 0;
}

double Batch::admit() {
  std::uint32_t computed = 0;
  while (!waiting_.empty() && running_.size() < limits_.max_running) {
    Sequence& next = *waiting_.front();
    const std::uint32_t to_compute = next.remote_prefill ? 0 : next.prompt_tokens - next.cached_tokens;
    // A prompt longer than a step's budget runs alone.
    if (computed > 0 && computed + to_compute > limits_.max_step_tokens) {
      break;
    }
    const std::uint32_t blocks = blocks_for(std::uint64_t{next.prompt_tokens} + next.output_tokens);
    if (!pool_.reserve(blocks)) {
      break;
    }
    next.reserved_blocks = blocks;
    computed += to_compute;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return computed * cost_.prefill_us;
}

double Batch::draw_decode_tokens() {
  const std::size_t words = (shape_.experts + 63) / 64;
  std::fill(active_.begin(), active_.end(), 0);
  decoding_ = 0;
  for (const auto& s : running_) {
    if (!decodes(*s)) {
      continue;
    }
    ++decoding_;
    s->experts->next_decode_token(picks_);
    for (std::size_t i = 0; i < picks_.size(); ++i) {
      active_[i / shape_.top_k * words + picks_[i] / 64U] |= std::uint64_t{1} << (picks_[i] % 64U);
    }
    if (s->records) {
      s->recorded.insert(s->recorded.end(), picks_.begin(), picks_.end());
    }
  }
  std::size_t distinct = 0;
  for (const std::uint64_t word : active_) {
    distinct += static_cast<std::size_t>(std::popcount(word));
  }
  const auto layers = static_cast<double>(shape_.layer_count());
  distinct_ = static_cast<double>(distinct) / layers;
  return decoding_ == 0 ? 0 : cost_.layer_scale * layers * (cost_.step_a_us + cost_.step_b_us * distinct_);
}

}  // namespace eldr::sim

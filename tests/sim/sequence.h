// SPDX-License-Identifier: Apache-2.0
// One answer that is being generated: shared by the engine, which makes its tokens, and the connection that
// sends them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "tests/sim/experts.h"

namespace eldr::sim {

/// The tokens that the sequences of one request have so far; the engine writes, a connection waits.
class Progress {
 public:
  explicit Progress(std::size_t sequences) : tokens_(sequences, 0) {}

  void advance(std::size_t sequence);
  void fail();

  struct Snapshot {
    std::vector<std::uint32_t> tokens;  ///< made so far, of each sequence
    bool failed = false;                ///< the engine stopped
  };
  /// Returns once `version` is old or the time has passed; `version` becomes the present one.
  Snapshot wait(std::uint64_t& version, std::chrono::milliseconds time);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t version_ = 0;
  std::vector<std::uint32_t> tokens_;
  bool failed_ = false;
};

struct Sequence {
  // Set before it is submitted.
  std::shared_ptr<Progress> progress;
  std::size_t index = 0;  ///< in progress
  std::unique_ptr<ExpertStream> experts;
  std::string label;  ///< for statistics
  std::uint32_t prompt_tokens = 0;
  std::uint32_t cached_tokens = 0;  ///< of the prompt, not computed again
  std::uint32_t output_tokens = 1;  ///< to make
  bool remote_prefill = false;      ///< the prompt's KV came from a prefill worker
  bool keeps_blocks = false;        ///< the prompt's blocks outlive it (a lease takes them over)
  bool records = false;             ///< keep the experts of decode tokens
  Clock::Steady arrived{};

  // The engine's.
  std::uint32_t made = 0;
  std::uint32_t reserved_blocks = 0;
  Clock::Steady first_token{};
  Clock::Steady last_token{};
  std::vector<std::uint16_t> recorded;  ///< [decode tokens][L][K]; read it once all tokens are made

  std::atomic<bool> cancelled{false};  ///< set by anyone: leaves the batch before the next step
};

}  // namespace eldr::sim

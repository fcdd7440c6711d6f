// SPDX-License-Identifier: Apache-2.0
// Passive health of one worker: ejected after consecutive failures, let back in through one probing request
// at a time, ejected for twice as long each time the probe fails.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "lib/base/clock.h"
#include "router/config/config.h"

namespace eldr::router {

/// Thread-safe. Time is given by the caller.
class Health {
 public:
  enum class Standing {
    kHealthy,  ///< takes requests
    kEjected,  ///< takes none (unless every worker is ejected)
    kProbing,  ///< its ejection is over; one request at a time may try it
  };

  explicit Health(HealthConfig config) : config_(config) {}

  Standing standing(Clock::Steady now) const;
  /// Called when a request was given to the worker; true if that request is the probe.
  bool claim_probe(Clock::Steady now);
  /// The worker answered (any status that is not its own failure).
  void succeeded();
  /// The worker did not answer, broke off, or answered with a server error. True: this failure ejected it.
  bool failed(Clock::Steady now);
  /// The probing request ended without saying anything about the worker (the client left).
  void abandon_probe();

  std::uint32_t consecutive_failures() const;
  bool is_ejected() const;  ///< ejected or on probation

 private:
  HealthConfig config_;
  std::atomic<bool> suspect_{false};  // false: nothing below matters; keeps the usual path free of the lock
  mutable std::mutex mutex_;
  std::uint32_t failures_ = 0;
  std::uint32_t ejections_ = 0;  // in a row
  bool ejected_ = false;
  bool probe_out_ = false;
  Clock::Steady ejected_until_{};
};

}  // namespace eldr::router

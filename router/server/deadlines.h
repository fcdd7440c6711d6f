// SPDX-License-Identifier: Apache-2.0
// Deadlines on sockets for the price of a store. One timer ticks for a whole thread and cancels the pending
// operations of every socket whose time is over; arming a deadline touches no timer at all, so each token
// relayed can have its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>  // Boost.Asio 1.74 uses std::exchange without it
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "lib/base/clock.h"

namespace eldr::router {

class Deadline;

/// Belongs to one thread's io_context and is used on that thread only. Outlives every Deadline in it.
class Deadlines {
 public:
  /// Deadlines are kept to within two ticks.
  static constexpr std::chrono::milliseconds kTick{10};

  Deadlines(boost::asio::io_context& io, const Clock& clock);
  void start();
  void stop();
  /// The time of the last tick: good enough to arm a deadline, free to read.
  Clock::Steady now() const { return now_; }

 private:
  friend class Deadline;
  void wait();
  void tick();

  boost::asio::steady_timer timer_;
  const Clock& clock_;
  Clock::Steady now_;
  bool stopped_ = false;
  std::vector<Deadline*> armed_;
};

/// The deadline of whatever a socket is waiting for. Once it has passed, the socket's operations end with
/// operation_aborted until it is armed anew or disarmed.
class Deadline {
 public:
  Deadline(Deadlines& all, boost::asio::ip::tcp::socket& socket) : all_(all), socket_(socket) {}
  ~Deadline() { disarm(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void arm(std::chrono::milliseconds wait) { arm_until(all_.now() + wait); }
  void arm_until(Clock::Steady when);
  void disarm();
  bool expired() const { return expired_; }

 private:
  friend class Deadlines;
  static constexpr std::size_t kNotArmed = static_cast<std::size_t>(-1);

  Deadlines& all_;
  boost::asio::ip::tcp::socket& socket_;
  Clock::Steady when_{};
  std::size_t slot_ = kNotArmed;  // in all_.armed_
  bool expired_ = false;
};

}  // namespace eldr::router

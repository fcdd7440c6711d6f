// SPDX-License-Identifier: Apache-2.0
// Reads how many requests each decode worker has, from its /metrics page, at an even pace.
#pragma once

#include <map>

#include <boost/asio/steady_timer.hpp>

#include "router/server/shared.h"

namespace eldr::router {

/// Used on its thread only. Workers are asked side by side, each at most once at a time, so one that hangs
/// delays nobody.
class LoadPoller {
 public:
  LoadPoller(ThreadContext& thread, Milliseconds period);
  void start();
  void stop();
  /// Whether nothing is pending any more after stop().
  bool idle() const { return !running_ && asked_.empty(); }

 private:
  Async<void> run();
  Async<void> ask(WorkerPtr worker);

  ThreadContext& thread_;
  const Milliseconds period_;
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
  bool running_ = false;
  std::map<WorkerPtr, UpstreamCall*> asked_;
};

}  // namespace eldr::router

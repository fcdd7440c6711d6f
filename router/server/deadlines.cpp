// SPDX-License-Identifier: Apache-2.0
#include "router/server/deadlines.h"

namespace eldr::router {

Deadlines::Deadlines(boost::asio::io_context& io, const Clock& clock)
    : timer_(io), clock_(clock), now_(clock.steady()) {}

void Deadlines::start() { wait(); }

void Deadlines::stop() {
  stopped_ = true;
  timer_.cancel();
}

void Deadlines::wait() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopped_) tick();
  });
}

void Deadlines::tick() {
  now_ = clock_.steady();
  for (auto* deadline : armed_) {
    if (deadline->when_ > now_) continue;
    // Cancelled again at each tick: between two operations there may have been nothing to cancel.
    deadline->expired_ = true;
    boost::system::error_code ignored;
    deadline->socket_.cancel(ignored);
  }
  wait();
}

void Deadline::arm_until(Clock::Steady when) {
  when_ = when;
  expired_ = false;
  if (slot_ != kNotArmed) return;
  slot_ = all_.armed_.size();
  all_.armed_.push_back(this);
}

void Deadline::disarm() {
  expired_ = false;
  if (slot_ == kNotArmed) return;
  auto& armed = all_.armed_;
  armed[slot_] = armed.back();
  armed[slot_]->slot_ = slot_;
  armed.pop_back();
  slot_ = kNotArmed;
}

}  // namespace eldr::router

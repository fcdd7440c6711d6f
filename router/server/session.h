// SPDX-License-Identifier: Apache-2.0
// One client connection: request after request until either side ends it.
#pragma once

#include <memory>

#include "router/server/client_link.h"
#include "router/server/shared.h"

namespace eldr::router {

/// Used on its thread only; keeps itself alive while it runs. Requests sent ahead (pipelined) wait in the
/// socket and are answered in order; while one waits there, the client's going shows only when a write fails.
class Session final : public ClientLink, public std::enable_shared_from_this<Session> {
 public:
  Session(ThreadContext& thread, boost::asio::ip::tcp::socket socket);

  Async<void> run();
  /// Ends the connection if no request is being served on it (drain).
  void close_if_idle();
  /// Ends it in any case (the drain's time is over).
  void close_now();

  Stream& stream() override { return stream_; }
  bool gone() const override { return gone_; }
  void set_call(UpstreamCall* call) override { call_ = call; }
  void watch() override;

 private:
  enum class Next { kRequest, kClose };
  Async<Next> next_head(RequestHead& head);
  Async<void> say(int status, const std::string& message);
  Async<void> linger();
  void look_at_client();

  ThreadContext& thread_;
  Stream stream_;
  UpstreamCall* call_ = nullptr;
  bool first_ = true;
  bool in_request_ = false;
  bool watching_ = false;
  bool gone_ = false;
  bool closing_ = false;
};

}  // namespace eldr::router

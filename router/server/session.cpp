// SPDX-License-Identifier: Apache-2.0
#include "router/server/session.h"

#include "router/server/api_error.h"
#include "router/server/exchange.h"

namespace eldr::router {
namespace {

constexpr std::chrono::seconds kLinger{1};
constexpr std::size_t kMaxLinger = 64U << 20U;

}  // namespace

Session::Session(ThreadContext& thread, boost::asio::ip::tcp::socket socket)
    : thread_(thread), stream_(std::move(socket), thread.deadlines) {
  stream_.no_delay();
}

Async<void> Session::run() {
  for (;;) {
    RequestHead head;
    const Next next = co_await next_head(head);
    if (next == Next::kClose) break;
    in_request_ = true;
    Exchange exchange(thread_, *this, std::move(head));
    const bool keep = co_await exchange.run();
    in_request_ = false;
    first_ = false;
    if (!keep || gone_ || closing_ || thread_.shared.metrics.draining) break;
  }
  if (!gone_ && !closing_) co_await linger();
  stream_.close();
}

Async<Session::Next> Session::next_head(RequestHead& head) {
  const auto& timeouts = thread_.shared.timeouts;
  if (stream_.pending().empty()) {
    stream_.deadline().arm(first_ ? timeouts.header : timeouts.keep_alive);
    const Io io = co_await stream_.read_some();
    if (io != Io::kOk) {
      closing_ = true;  // nothing was asked, so nothing is answered
      co_return Next::kClose;
    }
  }
  stream_.deadline().arm(timeouts.header);
  std::size_t size = 0;
  const Io io = co_await stream_.read_head(thread_.shared.limits.header, size);
  stream_.deadline().disarm();
  if (io == Io::kTimeout) {
    thread_.shared.metrics.deadline(Stage::kHeader);
    const std::string message = "the request's headers did not arrive in time";
    co_await say(408, message);
    co_return Next::kClose;
  }
  if (io == Io::kTooLarge) {
    const std::string message =
        "the request's headers are larger than " + std::to_string(thread_.shared.limits.header) + " bytes";
    co_await say(431, message);
    co_return Next::kClose;
  }
  if (io != Io::kOk) {
    closing_ = true;
    co_return Next::kClose;
  }
  auto parsed = parse_request_head(stream_.pending().substr(0, size));
  if (!parsed) {
    const std::string message = parsed.error().message;
    co_await say(400, message);
    co_return Next::kClose;
  }
  stream_.consume(size);
  head = std::move(*parsed);
  co_return Next::kRequest;
}

Async<void> Session::say(int status, const std::string& message) {
  thread_.shared.metrics.refused(Refusal::kHeader);
  const http::Headers none;
  const std::string answer = error_answer(status, message, false, none);
  stream_.deadline().arm(thread_.shared.timeouts.write);
  co_await stream_.write(answer);
  stream_.deadline().disarm();
}

/// Closing with bytes unread would reset the connection and could take the answer with it: say that nothing
/// more comes, then read what is still on its way, within bounds.
Async<void> Session::linger() {
  boost::system::error_code ignored;
  stream_.socket().shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.deadline().arm(kLinger);
  std::size_t drained = 0;
  for (;;) {
    stream_.consume(stream_.pending().size());
    const Io io = co_await stream_.read_some();
    drained += stream_.pending().size();
    if (io != Io::kOk || drained > kMaxLinger) co_return;
  }
}

void Session::watch() {
  if (watching_) return;
  watching_ = true;
  auto self = shared_from_this();
  stream_.socket().async_wait(boost::asio::ip::tcp::socket::wait_read,
                              [self](const boost::system::error_code& error) {
                                self->watching_ = false;
                                if (!error && self->in_request_) self->look_at_client();
                              });
}

void Session::look_at_client() {
  switch (stream_.peek()) {
    case Stream::Peer::kQuiet:  // woken by bytes that are read by now
      return watch();
    case Stream::Peer::kHasSent:  // the next request, sent ahead: left in the socket
      return;
    case Stream::Peer::kClosed:
      gone_ = true;
      if (call_ != nullptr) call_->cancel();
  }
}

void Session::close_if_idle() {
  if (in_request_) return;
  closing_ = true;
  stream_.close();
}

void Session::close_now() {
  gone_ = true;
  if (call_ != nullptr) call_->cancel();
  stream_.close();
}

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
#include "router/server/upstream.h"

#include <array>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace eldr::router {

namespace asio = boost::asio;
using asio::ip::tcp;

std::unique_ptr<Stream> UpstreamPool::take(const std::string& authority) {
  const auto found = idle_.find(authority);
  if (found == idle_.end()) return nullptr;
  auto& idle = found->second;
  while (!idle.empty()) {
    auto stream = std::move(idle.back().stream);
    const bool young = deadlines_.now() - idle.back().since < kIdleLifetime;
    idle.pop_back();
    if (young && !stream->is_stale()) return stream;
  }
  return nullptr;
}

void UpstreamPool::give(const std::string& authority, std::unique_ptr<Stream> stream) {
  auto& idle = idle_[authority];
  if (idle.size() >= limit_) return;
  stream->deadline().disarm();
  idle.push_back({std::move(stream), deadlines_.now()});
}

void UpstreamPool::sweep() {
  for (auto entry = idle_.begin(); entry != idle_.end();) {
    auto& idle = entry->second;
    while (!idle.empty() && deadlines_.now() - idle.front().since >= kIdleLifetime) idle.pop_front();
    entry = idle.empty() ? idle_.erase(entry) : std::next(entry);
  }
}

std::string_view name_of(CallEnd end) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "ok",        "cancelled",         "cannot connect",     "connecting took too long",
      "timed out", "connection broken", "answer is not HTTP", "answer too large"};
  return kNames[static_cast<std::size_t>(end)];
}

UpstreamCall::UpstreamCall(UpstreamContext context, std::string host, std::uint16_t port,
                           std::string authority)
    : context_(context), host_(std::move(host)), port_(port), authority_(std::move(authority)) {}

CallEnd UpstreamCall::end_of(Io io) const {
  if (cancelled_) return CallEnd::kCancelled;
  switch (io) {
    case Io::kOk:
      return CallEnd::kOk;
    case Io::kTimeout:
      return CallEnd::kTimeout;
    case Io::kTooLarge:
      return CallEnd::kTooLarge;
    case Io::kClosed:
    case Io::kReset:
      break;
  }
  return CallEnd::kBroken;
}

Async<CallEnd> UpstreamCall::connect() {
  boost::system::error_code error;
  std::vector<tcp::endpoint> endpoints;
  const auto address = asio::ip::make_address(host_, error);
  if (!error) {
    endpoints.emplace_back(address, port_);
  } else {
    tcp::resolver resolver(context_.io);
    const std::string port = std::to_string(port_);
    const auto found = co_await resolver.async_resolve(host_, port, tcp::resolver::numeric_service,
                                                       asio::redirect_error(asio::use_awaitable, error));
    if (cancelled_) co_return CallEnd::kCancelled;
    if (error) co_return CallEnd::kNoConnection;
    for (const auto& entry : found) endpoints.push_back(entry.endpoint());
  }
  for (const auto& endpoint : endpoints) {
    stream_ = std::make_unique<Stream>(tcp::socket(context_.io), context_.deadlines);
    stream_->deadline().arm(context_.timeouts.connect);
    co_await stream_->socket().async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
    if (cancelled_) co_return CallEnd::kCancelled;
    if (!error) {
      stream_->no_delay();
      co_return CallEnd::kOk;
    }
    if (stream_->deadline().expired()) co_return CallEnd::kConnectTimeout;
  }
  co_return CallEnd::kNoConnection;
}

Async<CallEnd> UpstreamCall::send_and_read_head(const std::vector<std::string_view>& pieces,
                                                Clock::Steady due, bool& nothing_came) {
  nothing_came = true;
  stream_->deadline().arm_until(due);
  const Io sent = co_await stream_->write(pieces);
  if (cancelled_ || sent == Io::kTimeout) co_return end_of(sent);
  // A worker may answer (with 413, say) and close before it has read everything: look for that answer even
  // when writing failed.
  for (;;) {
    std::size_t size = 0;
    const Io got = co_await stream_->read_head(context_.limits.header, size);
    if (!stream_->pending().empty()) nothing_came = false;
    if (got != Io::kOk) co_return end_of(got);
    auto head = parse_response_head(stream_->pending().substr(0, size));
    if (!head) co_return CallEnd::kMalformed;
    stream_->consume(size);
    if (head->status >= 200) {
      answer_ = std::move(*head);
      if (sent != Io::kOk) answer_.keep_alive = false;
      co_return CallEnd::kOk;
    }
    if (head->status == 101) co_return CallEnd::kMalformed;  // nobody asked to switch protocols
  }
}

Async<CallEnd> UpstreamCall::ask(std::string_view head, const std::vector<std::string_view>& body,
                                 Clock::Steady due) {
  std::vector<std::string_view> pieces;
  pieces.reserve(body.size() + 1);
  pieces.push_back(head);
  pieces.insert(pieces.end(), body.begin(), body.end());
  bool nothing_came = false;
  stream_ = context_.pool.take(authority_);
  if (stream_) {
    const CallEnd end = co_await send_and_read_head(pieces, due, nothing_came);
    if (end != CallEnd::kBroken || !nothing_came) co_return end;
  }
  const CallEnd connected = co_await connect();
  if (connected != CallEnd::kOk) co_return connected;
  co_return co_await send_and_read_head(pieces, due, nothing_came);
}

Async<CallEnd> UpstreamCall::read_body(std::string& into, std::size_t limit, Clock::Steady due) {
  BodyFraming framing = answer_.framing(false);
  if (answer_.content_length && *answer_.content_length > limit) co_return CallEnd::kTooLarge;
  if (answer_.content_length) into.reserve(static_cast<std::size_t>(*answer_.content_length));
  std::vector<std::string_view> payload;
  for (;;) {
    payload.clear();
    const auto step = framing.feed(stream_->pending(), &payload);
    if (step.malformed) co_return CallEnd::kMalformed;
    for (const auto piece : payload) {
      if (into.size() + piece.size() > limit) co_return CallEnd::kTooLarge;
      into += piece;
    }
    stream_->consume(step.consumed);
    if (framing.done()) break;
    stream_->deadline().arm_until(due);
    const Io io = co_await stream_->read_some();
    if (io == Io::kClosed && framing.is_until_close() && !cancelled_) break;
    if (io != Io::kOk) co_return end_of(io);
  }
  finish(framing);
  co_return CallEnd::kOk;
}

void UpstreamCall::finish(const BodyFraming& framing) {
  if (!stream_ || cancelled_) return;
  if (answer_.keep_alive && !framing.is_until_close() && stream_->pending().empty())
    context_.pool.give(authority_, std::move(stream_));
  stream_.reset();
}

void UpstreamCall::cancel() {
  cancelled_ = true;
  if (stream_) stream_->close();
}

}  // namespace eldr::router

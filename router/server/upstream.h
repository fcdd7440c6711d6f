// SPDX-License-Identifier: Apache-2.0
// The router as a client of its workers: kept-alive connections and one call at a time on each.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "router/config/config.h"
#include "router/server/head.h"
#include "router/server/stream.h"
#include "router/workers/worker.h"

namespace eldr::router {

/// Idle connections of one thread, by "host:port". Used on that thread only.
class UpstreamPool {
 public:
  /// Under the 5 s after which vLLM's server closes a connection that nothing came on.
  static constexpr std::chrono::seconds kIdleLifetime{4};

  UpstreamPool(Deadlines& deadlines, std::size_t limit) : deadlines_(deadlines), limit_(limit) {}

  /// The one used last, alive as far as can be told; null when there is none.
  std::unique_ptr<Stream> take(const std::string& authority);
  void give(const std::string& authority, std::unique_ptr<Stream> stream);
  /// Closes what is idle for too long. Call about once a second.
  void sweep();
  void clear() { idle_.clear(); }

 private:
  struct Idle {
    std::unique_ptr<Stream> stream;
    Clock::Steady since;
  };
  Deadlines& deadlines_;
  const std::size_t limit_;
  std::unordered_map<std::string, std::deque<Idle>> idle_;
};

/// What a call needs from the thread it runs on.
struct UpstreamContext {
  boost::asio::io_context& io;
  Deadlines& deadlines;
  UpstreamPool& pool;
  const Limits& limits;
  const Timeouts& timeouts;
};

/// How a call, or a part of it, ended.
enum class CallEnd {
  kOk,
  kCancelled,     ///< by cancel()
  kNoConnection,  ///< refused, unreachable, no such name
  kConnectTimeout,
  kTimeout,    ///< an answer did not come in time
  kBroken,     ///< the connection ended before the answer did
  kMalformed,  ///< the answer is not HTTP
  kTooLarge,   ///< the answer is over a limit
};
std::string_view name_of(CallEnd end);

/// One request to one worker. Used on one thread; destroyed with the answer unread, it closes its
/// connection, which is how a worker learns that nobody waits any more.
class UpstreamCall {
 public:
  UpstreamCall(UpstreamContext context, std::string host, std::uint16_t port, std::string authority);
  ~UpstreamCall() = default;
  UpstreamCall(const UpstreamCall&) = delete;
  UpstreamCall& operator=(const UpstreamCall&) = delete;

  /// Sends head and body, then reads the answer's head (interim 1xx answers are skipped). A kept-alive
  /// connection that turns out to be closed before any byte of an answer is replaced by a fresh one, once.
  /// The answer's head is due at `due`.
  Async<CallEnd> ask(std::string_view head, const std::vector<std::string_view>& body, Clock::Steady due);

  const ResponseHead& answer() const { return answer_; }
  Stream& stream() { return *stream_; }

  /// The whole body, without chunk framing, at most `limit` bytes.
  Async<CallEnd> read_body(std::string& into, std::size_t limit, Clock::Steady due);
  /// The body was read to its end by `framing`: keeps the connection for the next call if that is possible.
  void finish(const BodyFraming& framing);

  /// Ends whatever is pending, from another coroutine of the same thread.
  void cancel();
  bool cancelled() const { return cancelled_; }

 private:
  Async<CallEnd> connect();
  Async<CallEnd> send_and_read_head(const std::vector<std::string_view>& pieces, Clock::Steady due,
                                    bool& nothing_came);
  CallEnd end_of(Io io) const;

  UpstreamContext context_;
  const std::string host_;
  const std::uint16_t port_;
  const std::string authority_;
  std::unique_ptr<Stream> stream_;
  ResponseHead answer_;
  bool cancelled_ = false;
};

}  // namespace eldr::router

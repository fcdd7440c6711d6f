// SPDX-License-Identifier: Apache-2.0
// A TCP connection as both sides of the router use it: socket, deadline, one bounded input buffer.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>  // Boost.Asio 1.74 uses std::exchange without it
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "lib/base/status.h"
#include "router/server/deadlines.h"

namespace eldr::router {

template <class T>
using Async = boost::asio::awaitable<T>;

/// How an operation on a connection ended.
enum class Io {
  kOk,
  kClosed,    ///< end of stream
  kReset,     ///< the connection broke
  kTimeout,   ///< the armed deadline passed
  kTooLarge,  ///< the head does not fit its limit
};

/// Used on its io_context's thread only.
class Stream {
 public:
  Stream(boost::asio::ip::tcp::socket socket, Deadlines& deadlines);

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  Deadline& deadline() { return deadline_; }

  /// Bytes read and not consumed.
  std::string_view pending() const { return {buffer_.data() + begin_, end_ - begin_}; }
  void consume(std::size_t bytes);

  /// Reads once, whatever comes, behind what is pending. The buffer must not be full.
  Async<Io> read_some();
  /// Reads once into memory of the caller.
  Async<Io> read_into(char* data, std::size_t size, std::size_t& got);
  /// Reads until pending() begins with a whole head; `size` receives its length. kClosed only when the
  /// stream ended before any byte; kReset when it ended within.
  Async<Io> read_head(std::size_t limit, std::size_t& size);
  /// Writes all pieces with as few system calls as the system allows.
  Async<Io> write(const std::vector<std::string_view>& pieces);
  Async<Io> write(std::string_view bytes);

  /// Whether the other side has closed, or sent what nobody asked for: not to be used again.
  bool is_stale();
  /// What the system knows of the other side now.
  enum class Peer { kQuiet, kHasSent, kClosed };
  Peer peek();
  void no_delay();
  void close();

  static constexpr std::size_t kBuffer = 32U << 10U;

 private:
  Io ended(const boost::system::error_code& error) const;

  boost::asio::ip::tcp::socket socket_;
  Deadline deadline_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace eldr::router

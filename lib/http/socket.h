// SPDX-License-Identifier: Apache-2.0
// A connected TCP socket whose every wait ends at a deadline. Private to this layer.
//
// Asio's blocking calls cannot time out, so this one waits in poll(2). It has Beast's SyncReadStream shape,
// so that Beast's parsers read from it. It reads the steady clock itself: it is the boundary to the operating
// system.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include "lib/base/status.h"

namespace eldr::http {

using Deadline = std::chrono::steady_clock::time_point;

/// Not thread-safe but for shut_down(), which another thread may call while the socket is open.
class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// The deadline of every read from now on.
  void set_read_deadline(Deadline deadline) { read_deadline_ = deadline; }

  /// Beast's SyncReadStream: error eof at the end, timed_out at the deadline.
  template <class MutableBuffers>
  std::size_t read_some(const MutableBuffers& buffers, boost::system::error_code& ec) {
    for (auto it = boost::asio::buffer_sequence_begin(buffers);
         it != boost::asio::buffer_sequence_end(buffers); ++it) {
      const boost::asio::mutable_buffer buffer(*it);
      if (buffer.size() > 0) {
        return read_bytes(buffer.data(), buffer.size(), ec);
      }
    }
    ec = {};
    return 0;
  }
  template <class MutableBuffers>
  std::size_t read_some(const MutableBuffers& buffers) {
    boost::system::error_code ec;
    const std::size_t n = read_some(buffers, ec);
    if (ec) {
      throw boost::system::system_error(ec);
    }
    return n;
  }

  /// Whether something (data, the end, an error) can be read before `deadline`.
  bool wait_readable(Deadline deadline);
  /// Sends `first` and then `second`, in one system call where the kernel takes them.
  Status write_all(std::string_view first, std::string_view second, Deadline deadline);
  /// The peer closed or reset, or shut_down() was called.
  bool peer_gone() const;
  /// Ends both directions: waits return. Thread-safe while the socket is open.
  void shut_down();
  /// Before close, after an answer that the client may not have awaited: tells the end, then reads what still
  /// comes for a short time, since closing over unread bytes would reset the connection and take the answer
  /// with it.
  void linger();
  /// close() will reset the connection.
  void reset_on_close();
  void close();
  std::string local_address() const;

 private:
  std::size_t read_bytes(void* data, std::size_t size, boost::system::error_code& ec);

  int fd_;
  Deadline read_deadline_ = Deadline::max();
};

/// A listening socket. kInvalid, kUnavailable. The answer is a file descriptor that the caller owns.
Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog);
std::uint16_t port_of(int fd);
/// Connects before the deadline. The answer is a file descriptor that the caller owns.
Result<int> connect_to(const std::string& host, std::uint16_t port, Deadline deadline);
/// No delay for small writes, close-on-exec is set by the callers' system calls.
void tune(int fd);

}  // namespace eldr::http

// SPDX-License-Identifier: Apache-2.0
// A TCP server whose every byte a test decides: for answers that no HTTP library would send.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace eldr::kube::testing {

/// One accepted connection. Used by one thread.
class RawConnection {
 public:
  explicit RawConnection(int socket) : socket_(socket) {}
  /// Reads up to the end of the headers and the announced body; "" when the peer is gone.
  std::string read_request();
  /// False when the peer is gone.
  bool write(const std::string& bytes);
  /// Whether the peer closes within a second.
  bool peer_closes();
  /// Closes with a reset instead of an orderly end.
  void reset();

 private:
  int socket_;
};

/// Listens on a free port of 127.0.0.1; runs the script on a thread for each connection.
class RawServer {
 public:
  using Script = std::function<void(RawConnection&)>;
  explicit RawServer(Script script);
  ~RawServer();
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }
  bool stopping() const { return stopping_; }

 private:
  Script script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> threads_;  // of connections; touched by the acceptor, then by the destructor
  std::jthread acceptor_;
};

}  // namespace eldr::kube::testing

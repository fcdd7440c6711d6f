// SPDX-License-Identifier: Apache-2.0
// A TCP connection on which tests say exactly the bytes they want.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace eldr::http::testing {

class RawConnection {
 public:
  explicit RawConnection(std::uint16_t port, const char* address = "127.0.0.1");
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool connected() const { return fd_ >= 0; }
  /// False when the peer refused the bytes.
  bool send(std::string_view bytes);
  /// What arrives until `needle` was seen, the connection ended or the time passed.
  std::string read_until(std::string_view needle, std::chrono::milliseconds time = std::chrono::seconds(5));
  /// What arrives until the connection ends; `ended` tells whether it did within the time.
  std::string read_to_end(std::chrono::milliseconds time = std::chrono::seconds(5));
  bool ended() const { return ended_; }
  bool was_reset() const { return reset_; }
  void close();
  void close_with_reset();
  void half_close();             ///< no more bytes from us
  void shrink_receive_buffer();  ///< so that a peer's writes fill it soon

 private:
  std::string read(std::string_view needle, std::chrono::milliseconds time);
  int fd_ = -1;
  bool ended_ = false;
  bool reset_ = false;
};

}  // namespace eldr::http::testing

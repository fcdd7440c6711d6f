// SPDX-License-Identifier: Apache-2.0
// A client that sends exactly the bytes it is given, and leaves when it is told to.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace eldr::router::testing {

class RawClient {
 public:
  explicit RawClient(std::uint16_t port);
  ~RawClient() { leave(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes);
  /// POST with Content-Length.
  void post(std::string_view path, std::string_view body, std::string_view headers = "");
  /// What arrives until `until` appears, the connection ends or the time is over.
  std::string read_until(std::string_view until, std::chrono::milliseconds longest = std::chrono::seconds(5));
  /// One whole answer with a length or in chunks, head and body as they came.
  std::string read_answer(std::chrono::milliseconds longest = std::chrono::seconds(5));
  std::string read_to_end(std::chrono::milliseconds longest = std::chrono::seconds(5));
  bool ended() const { return ended_; }  ///< the router closed the connection
  void leave();

 private:
  bool read_more(std::chrono::steady_clock::time_point until);
  int fd_ = -1;
  bool ended_ = false;
  std::string buffer_;
};

/// Body bytes of an answer, chunk framing removed.
std::string body_of(const std::string& answer);
int status_of(const std::string& answer);
/// The header's value, or "".
std::string header_of(const std::string& answer, const std::string& name);

}  // namespace eldr::router::testing

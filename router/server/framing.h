// SPDX-License-Identifier: Apache-2.0
// Where an HTTP/1.1 message body ends, without decoding it: bytes are looked at once and passed on as they
// are. A pure state machine, fed with whatever pieces the network gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace eldr::router {

/// One body. Not thread-safe.
class BodyFraming {
 public:
  static BodyFraming none() { return BodyFraming(Kind::kLength, 0); }
  static BodyFraming length(std::uint64_t bytes) { return BodyFraming(Kind::kLength, bytes); }
  static BodyFraming chunked() { return BodyFraming(Kind::kChunked, 0); }
  static BodyFraming until_close() { return BodyFraming(Kind::kUntilClose, 0); }

  struct Step {
    std::size_t consumed = 0;  ///< bytes that belong to the body; the rest is the next message's
    bool malformed = false;    ///< not chunked coding: give the connection up
  };
  /// `payload`, if given, receives the bytes without chunk framing, as views into `bytes`.
  Step feed(std::string_view bytes, std::vector<std::string_view>* payload = nullptr);

  /// Whether the last byte was seen. A body until close is never done by itself.
  bool done() const {
    return kind_ == Kind::kChunked ? state_ == State::kDone : kind_ == Kind::kLength && remaining_ == 0;
  }
  bool is_chunked() const { return kind_ == Kind::kChunked; }
  bool is_until_close() const { return kind_ == Kind::kUntilClose; }
  std::uint64_t remaining() const { return remaining_; }  ///< of a body with a length

  static constexpr std::size_t kMaxLine = 4096;      ///< a chunk's size line or a trailer line
  static constexpr std::size_t kMaxTrailer = 16384;  ///< all trailer lines
  static constexpr int kMaxSizeDigits = 12;

 private:
  enum class Kind { kLength, kChunked, kUntilClose };
  enum class State {
    kSize,       // hexadecimal digits
    kExtension,  // the rest of the size line
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,  // at the start of a line
    kTrailer,
    kTrailerLf,
    kEndLf,
    kDone
  };
  BodyFraming(Kind kind, std::uint64_t remaining) : kind_(kind), remaining_(remaining) {}
  bool step(char c);  // one byte outside chunk data; false: malformed

  Kind kind_;
  State state_ = State::kSize;
  std::uint64_t remaining_ = 0;
  int digits_ = 0;
  std::size_t line_ = 0;
  std::size_t trailer_ = 0;
};

}  // namespace eldr::router

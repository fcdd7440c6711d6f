// SPDX-License-Identifier: Apache-2.0
// Reading a request's body into one block of memory, whose size is never over the limit.
#pragma once

#include <memory>
#include <string_view>

#include "router/server/head.h"
#include "router/server/stream.h"

namespace eldr::router {

/// Bytes that are not zeroed first.
class RequestBody {
 public:
  std::string_view view() const { return {data_.get(), size_}; }
  char* data() { return data_.get(); }
  std::size_t size() const { return size_; }
  void reserve(std::size_t capacity);
  void append(std::string_view bytes);
  void grew(std::size_t bytes) { size_ += bytes; }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

enum class BodyEnd { kOk, kTooLarge, kMalformed, kTimeout, kGone };

/// The whole body as `head` frames it, due at `due`. Answers "100 Continue" first where the client waits for
/// it. kTooLarge is known before any byte is read when the length is announced.
Async<BodyEnd> read_request_body(Stream& client, const RequestHead& head, std::size_t limit,
                                 Clock::Steady due, RequestBody& body);

}  // namespace eldr::router

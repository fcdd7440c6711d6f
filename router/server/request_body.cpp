// SPDX-License-Identifier: Apache-2.0
#include "router/server/request_body.h"

#include <algorithm>
#include <cstring>

namespace eldr::router {

void RequestBody::reserve(std::size_t capacity) {
  if (capacity <= capacity_) return;
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
  capacity_ = capacity;
}

void RequestBody::append(std::string_view bytes) {
  if (size_ + bytes.size() > capacity_) reserve(std::max(size_ + bytes.size(), capacity_ * 2));
  std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
}

namespace {

BodyEnd end_of(Io io) { return io == Io::kTimeout ? BodyEnd::kTimeout : BodyEnd::kGone; }

/// Straight from the socket into place.
Async<BodyEnd> read_length(Stream& client, std::size_t length, RequestBody& body) {
  body.reserve(length);
  const auto here = client.pending().substr(0, length);
  body.append(here);
  client.consume(here.size());
  while (body.size() < length) {
    std::size_t got = 0;
    const Io io = co_await client.read_into(body.data() + body.size(), length - body.size(), got);
    if (io != Io::kOk) co_return end_of(io);
    body.grew(got);
  }
  co_return BodyEnd::kOk;
}

Async<BodyEnd> read_chunked(Stream& client, std::size_t limit, RequestBody& body) {
  BodyFraming framing = BodyFraming::chunked();
  std::vector<std::string_view> payload;
  for (;;) {
    payload.clear();
    const auto step = framing.feed(client.pending(), &payload);
    if (step.malformed) co_return BodyEnd::kMalformed;
    for (const auto piece : payload) {
      if (body.size() + piece.size() > limit) co_return BodyEnd::kTooLarge;
      body.append(piece);
    }
    client.consume(step.consumed);
    if (framing.done()) co_return BodyEnd::kOk;
    const Io io = co_await client.read_some();
    if (io != Io::kOk) co_return end_of(io);
  }
}

}  // namespace

Async<BodyEnd> read_request_body(Stream& client, const RequestHead& head, std::size_t limit,
                                 Clock::Steady due, RequestBody& body) {
  const auto length = head.content_length.value_or(0);
  if (length > limit) co_return BodyEnd::kTooLarge;
  if (!head.chunked && length == 0) co_return BodyEnd::kOk;
  client.deadline().arm_until(due);
  if (head.expects_continue && client.pending().empty()) {
    const Io io = co_await client.write("HTTP/1.1 100 Continue\r\n\r\n");
    if (io != Io::kOk) co_return end_of(io);
  }
  if (head.chunked) co_return co_await read_chunked(client, limit, body);
  co_return co_await read_length(client, static_cast<std::size_t>(length), body);
}

}  // namespace eldr::router

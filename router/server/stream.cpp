// SPDX-License-Identifier: Apache-2.0
#include "router/server/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <sys/socket.h>

#include "router/server/head.h"

namespace eldr::router {

namespace asio = boost::asio;

Stream::Stream(asio::ip::tcp::socket socket, Deadlines& deadlines)
    : socket_(std::move(socket)), deadline_(deadlines, socket_) {}

void Stream::consume(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
}

Io Stream::ended(const boost::system::error_code& error) const {
  if (!error) return Io::kOk;
  if (error == asio::error::eof) return Io::kClosed;
  if (error == asio::error::operation_aborted && deadline_.expired()) return Io::kTimeout;
  return Io::kReset;
}

Async<Io> Stream::read_into(char* data, std::size_t size, std::size_t& got) {
  boost::system::error_code error;
  got = co_await socket_.async_read_some(asio::buffer(data, size),
                                         asio::redirect_error(asio::use_awaitable, error));
  co_return ended(error);
}

Async<Io> Stream::read_some() {
  if (buffer_.size() < kBuffer) buffer_.resize(kBuffer);
  if (end_ == buffer_.size() && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  std::size_t got = 0;
  const Io io = co_await read_into(buffer_.data() + end_, buffer_.size() - end_, got);
  end_ += got;
  co_return io;
}

Async<Io> Stream::read_head(std::size_t limit, std::size_t& size) {
  std::size_t searched = 0;
  for (;;) {
    const auto bytes = pending();
    size = end_of_head(bytes, searched);
    if (size != std::string_view::npos) co_return size <= limit ? Io::kOk : Io::kTooLarge;
    searched = bytes.size();
    if (searched >= limit) co_return Io::kTooLarge;
    if (begin_ == 0 && end_ == buffer_.size() && end_ >= kBuffer) buffer_.resize(limit + kBuffer);
    const Io io = co_await read_some();
    if (io == Io::kClosed && searched > 0) co_return Io::kReset;
    if (io != Io::kOk) co_return io;
  }
}

Async<Io> Stream::write(const std::vector<std::string_view>& pieces) {
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(pieces.size());
  for (const auto piece : pieces) buffers.emplace_back(piece.data(), piece.size());
  boost::system::error_code error;
  co_await asio::async_write(socket_, buffers, asio::redirect_error(asio::use_awaitable, error));
  co_return ended(error);
}

Async<Io> Stream::write(std::string_view bytes) {
  boost::system::error_code error;
  co_await asio::async_write(socket_, asio::buffer(bytes.data(), bytes.size()),
                             asio::redirect_error(asio::use_awaitable, error));
  co_return ended(error);
}

bool Stream::is_stale() { return !pending().empty() || peek() != Peer::kQuiet; }

Stream::Peer Stream::peek() {
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got > 0) return Peer::kHasSent;
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? Peer::kQuiet
                                                                                : Peer::kClosed;
}

void Stream::no_delay() {
  boost::system::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

void Stream::close() {
  boost::system::error_code ignored;
  deadline_.disarm();
  socket_.close(ignored);
}

}  // namespace eldr::router

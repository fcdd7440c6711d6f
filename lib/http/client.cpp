// SPDX-License-Identifier: Apache-2.0
#include "lib/http/client.h"

#include <array>

#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include "lib/http/socket.h"

namespace eldr::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;

Error error_for(const error_code& ec, const std::string& where) {
  using beast::http::error;
  if (ec == boost::asio::error::timed_out) {
    return {Code::kTimeout, where + ": no whole answer before the deadline", 0};
  }
  if (ec == error::body_limit || ec == error::header_limit || ec == error::buffer_overflow) {
    return {Code::kResourceExhausted, where + ": the answer is too large", 0};
  }
  if (ec == error::end_of_stream || ec == error::partial_message || ec == boost::asio::error::eof ||
      ec.category() == boost::system::system_category()) {
    return {Code::kUnavailable, where + ": the connection ended before the answer did (" + ec.message() + ")",
            0};
  }
  return {Code::kInvalid, where + ": not an HTTP answer: " + ec.message(), 0};
}

Result<std::string> head_of(const ClientRequest& request) {
  const std::string host =
      request.host.find(':') == std::string::npos ? request.host : "[" + request.host + "]";
  std::string head = request.method + " " + request.target + " HTTP/1.1\r\nHost: " + host + ":" +
                     std::to_string(request.port) + "\r\nConnection: close\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    head += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_valid_header(name, value)) {
      return failure(Code::kInvalid, "header \"" + name + "\": not allowed in a request");
    }
    head.append(name).append(": ").append(value).append("\r\n");
  }
  return head + "\r\n";
}

}  // namespace

Result<ClientResponse> fetch(const ClientRequest& request, const ClientLimits& limits, const BodySink& sink) {
  const Deadline deadline = std::chrono::steady_clock::now() + limits.deadline;
  const std::string where =
      request.method + " http://" + request.host + ":" + std::to_string(request.port) + request.target;
  auto head = head_of(request);
  if (!head) {
    return failure(head.error());
  }
  auto fd = connect_to(request.host, request.port, deadline);
  if (!fd) {
    return failure(fd.error());
  }
  Socket socket(*fd);
  // A server may answer before it read the whole body (413, 503): read its answer even when the write fails.
  const Status sent = socket.write_all(*head, request.body, deadline);
  socket.set_read_deadline(deadline);

  beast::flat_buffer buffer;
  beast::http::response_parser<beast::http::buffer_body> parser;
  parser.body_limit(limits.max_body);
  parser.skip(request.method == "HEAD");
  error_code ec;
  beast::http::read_header(socket, buffer, parser, ec);
  if (ec) {
    return failure(sent ? error_for(ec, where) : sent.error().with_context(where));
  }

  ClientResponse response;
  response.status = static_cast<int>(parser.get().result_int());
  for (const auto& field : parser.get()) {
    response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  std::array<char, 16384> piece{};
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    beast::http::read_some(socket, buffer, parser, ec);
    if (ec == beast::http::error::need_buffer) {
      ec = {};
    }
    const std::string_view got(piece.data(), piece.size() - parser.get().body().size);
    if (!got.empty()) {
      if (!sink) {
        response.body.append(got);
      } else if (!sink(got)) {
        return failure(Code::kCancelled, where + ": the reader hung up");
      }
    }
    if (ec) {
      return failure(error_for(ec, where));
    }
  }
  return response;
}

}  // namespace eldr::http

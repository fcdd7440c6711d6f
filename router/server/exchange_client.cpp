// SPDX-License-Identifier: Apache-2.0
// What an exchange says to its client.
#include <boost/asio/socket_base.hpp>

#include "router/server/api_error.h"
#include "router/server/exchange.h"

namespace eldr::router {
namespace {

bool has_header(const http::Headers& headers, std::string_view name) {
  for (const auto& header : headers)
    if (equals_ignoring_case(header.first, name)) return true;
  return false;
}

}  // namespace

Async<Io> Exchange::write_to_client(const std::vector<std::string_view>& pieces) {
  Stream& stream = client_.stream();
  stream.deadline().arm(shared_.timeouts.write);
  const Io io = co_await stream.write(pieces);
  stream.deadline().disarm();
  if (io != Io::kOk) keep_alive_ = false;
  co_return io;
}

Async<void> Exchange::refuse(int status, const std::string& message, std::optional<Refusal> refusal) {
  if (refusal) shared_.metrics.refused(*refusal);
  if (!body_read_ || shared_.metrics.draining) keep_alive_ = false;
  http::Headers extra = debug_;
  extra.emplace_back("X-Request-Id", request_id_);
  if (status == 503 || status == 429) extra.emplace_back("Retry-After", "1");
  if (status == 405) extra.emplace_back("Allow", "POST");
  const std::string answer = error_answer(status, message, keep_alive_, extra);
  status_ = status;
  std::vector<std::string_view> pieces(1, answer);
  co_await write_to_client(pieces);
}

Async<void> Exchange::give_up(Role role, const std::string& worker, CallEnd end) {
  const int status = end == CallEnd::kTimeout || end == CallEnd::kConnectTimeout ? 504 : 502;
  std::string message(name_of(role));
  message += worker.empty() ? " workers: none could be asked" : " worker " + worker + ": ";
  if (!worker.empty()) message += name_of(end);
  co_await refuse(status, message, std::nullopt);
}

std::string Exchange::answer_head(const ResponseHead& answer, const BodyFraming& framing, bool dechunk) {
  if (dechunk || framing.is_until_close() || shared_.metrics.draining) keep_alive_ = false;
  std::string text;
  text.reserve(512);
  text.append("HTTP/1.1 ").append(std::to_string(answer.status)).append(" ");
  text.append(answer.reason).append("\r\n");
  const auto connection = http::find_header(answer.headers, "Connection");
  for (const auto& [name, value] : answer.headers)
    if (!is_hop_by_hop(name, connection)) append_header(text, name, value);
  if (framing.is_chunked() && !dechunk) append_header(text, "Transfer-Encoding", "chunked");
  if (!has_header(answer.headers, "X-Request-Id")) append_header(text, "X-Request-Id", request_id_);
  for (const auto& [name, value] : debug_) append_header(text, name, value);
  if (!keep_alive_)
    append_header(text, "Connection", "close");
  else if (head_.version == 10)
    append_header(text, "Connection", "keep-alive");
  text += "\r\n";
  return text;
}

Async<void> Exchange::answer_whole(const ResponseHead& answer, const std::string& body) {
  ResponseHead head = answer;
  head.chunked = false;
  std::erase_if(head.headers,
                [](const auto& header) { return equals_ignoring_case(header.first, "Content-Length"); });
  head.headers.emplace_back("Content-Length", std::to_string(body.size()));
  head.content_length = body.size();
  const std::string text = answer_head(head, head.framing(false), false);
  status_ = head.status;
  std::vector<std::string_view> pieces(1, text);
  if (head_.method != "HEAD") pieces.push_back(body);
  co_await write_to_client(pieces);
}

void Exchange::break_stream(const BodyFraming& framing, bool dechunk, Breaker breaker) {
  keep_alive_ = false;
  shared_.metrics.stream_broken(breaker);
  // Where the end of the connection would read as the end of the answer, a reset says that it is not.
  if (!dechunk && !framing.is_until_close()) return;
  boost::system::error_code ignored;
  client_.stream().socket().set_option(boost::asio::socket_base::linger(true, 0), ignored);
}

void Exchange::note_gone(Gone stage) {
  keep_alive_ = false;
  shared_.metrics.client_gone(stage);
}

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
#include "tests/router/support/raw_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "router/server/head.h"

namespace eldr::router::testing {

RawClient::RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

void RawClient::leave() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the router may refuse a body before it has all of it
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

void RawClient::post(std::string_view path, std::string_view body, std::string_view headers) {
  std::string request =
      "POST " + std::string(path) + " HTTP/1.1\r\nHost: router\r\nContent-Type: application/json\r\n";
  request += headers;
  request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  request += body;
  send(request);
}

bool RawClient::read_more(std::chrono::steady_clock::time_point until) {
  if (ended_) return false;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd poller{fd_, POLLIN, 0};
  if (::poll(&poller, 1, static_cast<int>(left.count())) <= 0) return false;
  char bytes[65536];
  const auto got = ::recv(fd_, bytes, sizeof bytes, 0);
  if (got <= 0) {
    ended_ = true;
    return false;
  }
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::read_until(std::string_view until, std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (buffer_.find(until) == std::string::npos && read_more(end)) {
  }
  const auto at = buffer_.find(until);
  const auto size = at == std::string::npos ? buffer_.size() : at + until.size();
  std::string text = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return text;
}

std::string RawClient::read_answer(std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  std::string head = read_until("\r\n\r\n", longest);
  const auto parsed = parse_response_head(head);
  if (!parsed) return head;
  BodyFraming framing = parsed->framing(false);
  std::string answer = std::move(head);
  while (true) {
    const auto step = framing.feed(buffer_);
    answer += buffer_.substr(0, step.consumed);
    buffer_.erase(0, step.consumed);
    if (framing.done() || step.malformed || !read_more(end)) return answer;
  }
}

std::string RawClient::read_to_end(std::chrono::milliseconds longest) {
  const auto end = std::chrono::steady_clock::now() + longest;
  while (read_more(end)) {
  }
  return std::exchange(buffer_, {});
}

std::string body_of(const std::string& answer) {
  const auto size = end_of_head(answer, 0);
  if (size == std::string::npos) return "";
  const auto head = parse_response_head(answer.substr(0, size));
  if (!head) return "";
  BodyFraming framing = head->framing(false);
  std::vector<std::string_view> pieces;
  framing.feed(std::string_view(answer).substr(size), &pieces);
  std::string body;
  for (const auto piece : pieces) body += piece;
  return body;
}

int status_of(const std::string& answer) {
  const auto size = end_of_head(answer, 0);
  if (size == std::string::npos) return 0;
  const auto head = parse_response_head(answer.substr(0, size));
  return head ? head->status : 0;
}

std::string header_of(const std::string& answer, const std::string& name) {
  const auto size = end_of_head(answer, 0);
  if (size == std::string::npos) return "";
  const auto head = parse_response_head(answer.substr(0, size));
  return head ? std::string(http::find_header(head->headers, name)) : "";
}

}  // namespace eldr::router::testing

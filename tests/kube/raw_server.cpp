// SPDX-License-Identifier: Apache-2.0
#include "tests/kube/raw_server.h"

#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace eldr::kube::testing {

std::string RawConnection::read_request() {
  std::string text;
  char buffer[4096];
  for (;;) {
    const auto end = text.find("\r\n\r\n");
    if (end != std::string::npos) {
      const auto at = text.find("Content-Length:");
      const std::size_t body = at == std::string::npos || at > end ? 0 : std::stoul(text.substr(at + 15));
      if (text.size() >= end + 4 + body) {
        return text;
      }
    }
    const auto got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got <= 0) {
      return "";
    }
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

bool RawConnection::write(const std::string& bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size()) {
    const auto wrote = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (wrote <= 0) {
      return false;
    }
    sent += static_cast<std::size_t>(wrote);
  }
  return true;
}

bool RawConnection::peer_closes() {
  pollfd readable{socket_, POLLIN, 0};
  char byte = 0;
  return ::poll(&readable, 1, 1000) == 1 && ::recv(socket_, &byte, 1, 0) <= 0;
}

void RawConnection::reset() {
  const linger hard{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
}

RawServer::RawServer(Script script) : script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port to listen on");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] {
    while (!stopping_) {
      pollfd readable{listener_, POLLIN, 0};
      if (::poll(&readable, 1, 20) != 1) {
        continue;
      }
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) {
        continue;
      }
      ++connections_;
      threads_.emplace_back([this, socket] {
        const timeval limit{10, 0};  // a script never hangs a test
        ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        RawConnection connection(socket);
        script_(connection);
        ::close(socket);
      });
    }
  });
}

RawServer::~RawServer() {
  stopping_ = true;
  acceptor_.join();
  ::close(listener_);
}

}  // namespace eldr::kube::testing

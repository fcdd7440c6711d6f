// SPDX-License-Identifier: Apache-2.0
#include "tests/http/raw_connection.h"

#include <cerrno>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace eldr::http::testing {

RawConnection::RawConnection(std::uint16_t port, const char* address) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    close();
  }
}

RawConnection::~RawConnection() { close(); }

bool RawConnection::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::string RawConnection::read_until(std::string_view needle, std::chrono::milliseconds time) {
  return read(needle, time);
}

std::string RawConnection::read_to_end(std::chrono::milliseconds time) { return read({}, time); }

std::string RawConnection::read(std::string_view needle, std::chrono::milliseconds time) {
  std::string got;
  const auto end = std::chrono::steady_clock::now() + time;
  while (!ended_ && (needle.empty() || got.find(needle) == std::string::npos)) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd p{fd_, POLLIN, 0};
    if (left <= 0 || ::poll(&p, 1, static_cast<int>(left)) <= 0) {
      break;
    }
    char buffer[4096];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n > 0) {
      got.append(buffer, static_cast<std::size_t>(n));
    } else {
      ended_ = true;
      reset_ = n < 0 && errno == ECONNRESET;
    }
  }
  return got;
}

void RawConnection::close() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

void RawConnection::close_with_reset() {
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

void RawConnection::half_close() { ::shutdown(fd_, SHUT_WR); }

void RawConnection::shrink_receive_buffer() {
  const int bytes = 4096;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

}  // namespace eldr::http::testing

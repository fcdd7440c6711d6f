// SPDX-License-Identifier: Apache-2.0
#include "lib/http/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <boost/asio/error.hpp>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace eldr::http {
namespace {

using std::chrono::steady_clock;

// Milliseconds for poll(2), rounded up so that it never wakes before the deadline; -1 without one.
int poll_timeout(Deadline deadline) {
  if (deadline == Deadline::max()) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 24 * 3600 * 1000));
}

// True: an event or an error is there. False: the deadline passed.
bool wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, poll_timeout(deadline));
    if (n > 0) {
      return true;
    }
    if (n < 0 && errno != EINTR) {
      return true;  // the following system call tells the error
    }
    if (n == 0 && steady_clock::now() >= deadline) {
      return false;
    }
  }
}

std::string errno_text(int error) {
  std::array<char, 128> buffer{};
  return ::strerror_r(error, buffer.data(), buffer.size());
}

}  // namespace

bool Socket::wait_readable(Deadline deadline) { return wait_for(fd_, POLLIN, deadline); }

std::size_t Socket::read_bytes(void* data, std::size_t size, boost::system::error_code& ec) {
  for (;;) {
    const ssize_t n = ::recv(fd_, data, size, MSG_DONTWAIT);
    if (n > 0) {
      ec = {};
      // A peer that sends a byte now and then must not escape the deadline.
      if (steady_clock::now() >= read_deadline_) {
        ec = boost::asio::error::timed_out;
        return 0;
      }
      return static_cast<std::size_t>(n);
    }
    if (n == 0) {
      ec = boost::asio::error::eof;
      return 0;
    }
    if (errno == EINTR) {
      continue;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
      ec = boost::system::error_code(errno, boost::system::system_category());
      return 0;
    }
    if (!wait_for(fd_, POLLIN, read_deadline_)) {
      ec = boost::asio::error::timed_out;
      return 0;
    }
  }
}

Status Socket::write_all(std::string_view first, std::string_view second, Deadline deadline) {
  while (!first.empty() || !second.empty()) {
    std::array<iovec, 2> parts{};
    int used = 0;
    for (const std::string_view part : {first, second}) {
      if (!part.empty()) {
        parts[static_cast<std::size_t>(used++)] = {const_cast<char*>(part.data()), part.size()};
      }
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = static_cast<std::size_t>(used);
    const ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      const auto sent = static_cast<std::size_t>(n);
      const std::size_t of_first = std::min(sent, first.size());
      first.remove_prefix(of_first);
      second.remove_prefix(sent - of_first);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd_, POLLOUT, deadline)) {
        return failure(Code::kTimeout, "the peer did not read in time");
      }
    } else if (errno != EINTR) {
      return failure(Code::kUnavailable, "write: " + errno_text(errno));
    }
  }
  return {};
}

bool Socket::peer_gone() const {
  if (fd_ < 0) {
    return true;
  }
  pollfd p{fd_, POLLRDHUP, 0};
  return ::poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

void Socket::shut_down() { ::shutdown(fd_, SHUT_RDWR); }

void Socket::linger() {
  constexpr std::size_t kMostDiscarded = 16U << 20U;
  constexpr auto kPatience = std::chrono::seconds(1);
  ::shutdown(fd_, SHUT_WR);
  set_read_deadline(steady_clock::now() + kPatience);
  std::array<char, 16384> discarded{};
  boost::system::error_code ec;
  for (std::size_t total = 0; total < kMostDiscarded && !ec;) {
    total += read_bytes(discarded.data(), discarded.size(), ec);
  }
}

void Socket::reset_on_close() {
  const struct ::linger now { 1, 0 };
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void Socket::close() {
  if (fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

std::string Socket::local_address() const {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  std::array<char, NI_MAXHOST> host{};
  if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&address), length, host.data(), host.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return {};
  }
  const std::string text(host.data());
  constexpr std::string_view kMapped = "::ffff:";
  return text.starts_with(kMapped) ? text.substr(kMapped.size()) : text;
}

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<AddressList> look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return failure((flags & AI_NUMERICHOST) != 0 ? Code::kInvalid : Code::kUnavailable,
                   "address \"" + host + "\": " + ::gai_strerror(error));
  }
  return AddressList(found, &::freeaddrinfo);
}

}  // namespace

Result<int> listen_on(const std::string& address, std::uint16_t port, int backlog) {
  auto list = look_up(address, port, AI_NUMERICHOST | AI_PASSIVE);
  if (!list) {
    return failure(list.error());
  }
  const std::string where = address + " port " + std::to_string(port);
  const addrinfo& a = **list;
  const int fd = ::socket(a.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    return failure(Code::kUnavailable, "socket: " + errno_text(errno));
  }
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (a.ai_family == AF_INET6) {
    const int off = 0;  // "[::]" serves IPv4 as well
    ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(fd, a.ai_addr, a.ai_addrlen) != 0 || ::listen(fd, backlog) != 0) {
    const int error = errno;
    ::close(fd);
    return failure(Code::kUnavailable, "cannot listen on " + where + ": " + errno_text(error));
  }
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return 0;
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

Result<int> connect_to(const std::string& host, std::uint16_t port, Deadline deadline) {
  auto list = look_up(host, port, 0);
  if (!list) {
    return failure(list.error());
  }
  const std::string where = "connect to " + host + " port " + std::to_string(port) + ": ";
  Error last{Code::kUnavailable, where + "no address", 0};
  for (const addrinfo* a = list->get(); a != nullptr; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      last.message = where + errno_text(errno);
      continue;
    }
    int error = ::connect(fd, a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      if (wait_for(fd, POLLOUT, deadline)) {
        socklen_t length = sizeof error;
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
      } else {
        error = ETIMEDOUT;
      }
    }
    if (error == 0) {
      tune(fd);
      return fd;
    }
    ::close(fd);
    last = Error{error == ETIMEDOUT ? Code::kTimeout : Code::kUnavailable, where + errno_text(error), 0};
  }
  return failure(last);
}

void tune(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace eldr::http

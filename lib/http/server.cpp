// SPDX-License-Identifier: Apache-2.0
#include "lib/http/server.h"

#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/http/socket.h"

namespace eldr::http {
namespace {

namespace beast = boost::beast;
using boost::system::error_code;
using std::chrono::steady_clock;

// Waiting in accept's queue, beyond the connections served.
constexpr int kBacklog = 512;

class Writer final : public ResponseWriter {
 public:
  struct Terms {
    bool head_only = false;   // HEAD: no body bytes
    bool keep_alive = false;  // what the request asks for
    bool chunked = true;      // false for HTTP/1.0: the end of the connection ends the body
  };
  Writer(Socket& socket, std::chrono::milliseconds timeout, Terms terms, const std::atomic<bool>& stopping)
      : socket_(socket), timeout_(timeout), terms_(terms), stopping_(stopping) {}

  Status respond(int status, std::string_view content_type, std::string_view body, Headers extra) override {
    if (state_ != State::kFresh) {
      return failure(Code::kInvalid, "respond: the answer has begun already");
    }
    auto head = head_of(status, content_type, extra);
    if (!head) {
      return failure(head.error());
    }
    *head += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    state_ = State::kFinished;
    return send(*head, terms_.head_only ? std::string_view{} : body);
  }

  Status start(int status, std::string_view content_type, Headers extra) override {
    if (state_ != State::kFresh) {
      return failure(Code::kInvalid, "start: the answer has begun already");
    }
    if (!terms_.chunked) {
      terms_.keep_alive = false;
    }
    auto head = head_of(status, content_type, extra);
    if (!head) {
      return failure(head.error());
    }
    pending_head_ = std::move(*head);
    pending_head_ += terms_.chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
    state_ = State::kStarted;
    return {};
  }

  Status write(std::string_view chunk) override {
    if (state_ != State::kStarted) {
      return failure(Code::kInvalid, "write: the answer has not begun or is over");
    }
    return send_chunk(chunk, /*last=*/false);
  }

  Status finish() override {
    if (state_ != State::kStarted) {
      return failure(Code::kInvalid, "finish: the answer has not begun or is over");
    }
    const Status sent = send_chunk({}, /*last=*/true);
    if (sent) {
      state_ = State::kFinished;
    }
    return sent;
  }

  void abort() override {
    socket_.reset_on_close();
    state_ = State::kBroken;
  }

  bool client_gone() override { return state_ == State::kBroken || socket_.peer_gone(); }

  bool untouched() const { return state_ == State::kFresh; }
  bool reusable() const { return state_ == State::kFinished && terms_.keep_alive && !closing_; }

 private:
  enum class State { kFresh, kStarted, kFinished, kBroken };

  Result<std::string> head_of(int status, std::string_view content_type, const Headers& extra) {
    if (status < 200 || status > 999) {
      return failure(Code::kInvalid, "status " + std::to_string(status) + ": allowed are 200 to 999");
    }
    closing_ = !terms_.keep_alive || stopping_.load();
    std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
    head += reason_of(status);
    head += "\r\n";
    const auto add = [&](std::string_view name, std::string_view value) {
      if (!is_valid_header(name, value)) {
        return false;
      }
      head.append(name).append(": ").append(value).append("\r\n");
      return true;
    };
    if (!content_type.empty() && !add("Content-Type", content_type)) {
      return failure(Code::kInvalid, "content type: control characters are not allowed");
    }
    for (const auto& [name, value] : extra) {
      if (!add(name, value)) {
        return failure(Code::kInvalid, "header \"" + name + "\": not allowed in an answer");
      }
    }
    head += closing_ ? "Connection: close\r\n" : (terms_.chunked ? "" : "Connection: keep-alive\r\n");
    return head;
  }

  Status send_chunk(std::string_view chunk, bool last) {
    std::string prefix = std::exchange(pending_head_, {});
    if (terms_.head_only) {
      return send(prefix, {});
    }
    if (!terms_.chunked) {
      return send(prefix, chunk);
    }
    if (last) {
      return send(prefix, "0\r\n\r\n");
    }
    if (chunk.empty()) {
      return send(prefix, {});
    }
    char size[16];
    const auto hex = std::to_chars(size, size + sizeof size, chunk.size(), 16);
    prefix.append(size, hex.ptr).append("\r\n").append(chunk).append("\r\n");
    return send(prefix, {});
  }

  Status send(std::string_view first, std::string_view second) {
    Status sent = socket_.write_all(first, second, steady_clock::now() + timeout_);
    if (!sent) {
      state_ = State::kBroken;
    }
    return sent;
  }

  Socket& socket_;
  const std::chrono::milliseconds timeout_;
  Terms terms_;
  const std::atomic<bool>& stopping_;
  State state_ = State::kFresh;
  bool closing_ = false;
  std::string pending_head_;
};

// What went wrong while a request was read, as an answer; nullopt: say nothing and close.
struct Refusal {
  int status;
  std::string text;
};

std::optional<Refusal> refusal_for(const error_code& ec, const ServerOptions& options) {
  using beast::http::error;
  if (ec == error::header_limit || ec == error::buffer_overflow) {
    return Refusal{431,
                   "request line and headers: more than " + std::to_string(options.max_header) + " bytes\n"};
  }
  if (ec == error::body_limit) {
    return Refusal{413, "body: more than " + std::to_string(options.max_body) + " bytes\n"};
  }
  if (ec == boost::asio::error::timed_out) {
    return Refusal{
        408, "the request did not arrive within " + std::to_string(options.read_timeout.count()) + " ms\n"};
  }
  if (ec == error::end_of_stream || ec == error::partial_message ||
      ec.category() == boost::system::system_category() || ec == boost::asio::error::eof) {
    return std::nullopt;  // the client went away
  }
  return Refusal{400, "not an HTTP request: " + ec.message() + "\n"};
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Handler handler, int listener, int wake)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        listener_(listener),
        wake_(wake),
        port_(port_of(listener)),
        acceptor_([this] { accept_and_reap(); }) {}

  ~Impl() {
    stop(std::chrono::milliseconds(0));
    ::close(wake_);
  }

  std::uint16_t port() const { return port_; }
  std::size_t connections() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  std::size_t in_flight() const { return in_flight_.load(); }

  void stop(std::chrono::milliseconds grace) {
    const std::lock_guard one_stop(stop_mutex_);
    if (!acceptor_.joinable()) {
      return;
    }
    {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      for (Connection& c : connections_) {
        if (c.idle && !c.done) {
          c.socket.shut_down();
        }
      }
      wake();
      changed_.wait_for(lock, grace, [&] { return open_ == 0; });
      for (Connection& c : connections_) {
        if (!c.done) {
          c.socket.shut_down();
        }
      }
    }
    acceptor_.join();
  }

 private:
  struct Connection {
    explicit Connection(int fd) : socket(fd) {}
    Socket socket;
    bool idle = true;   // between requests; guarded by mutex_
    bool done = false;  // the socket is closed, the thread is about to end; guarded by mutex_
    std::thread thread;
  };

  void wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake_, &one, sizeof one);
  }

  void accept_and_reap() {
    bool accept_failed = false;
    while (!reap()) {
      pollfd fds[2] = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      // After a failed accept (out of descriptors) wait a little instead of spinning on a readable listener.
      ::poll(fds, listener_ < 0 || accept_failed ? 1 : 2, accept_failed ? 50 : -1);
      accept_failed = false;
      if (fds[0].revents != 0) {
        std::uint64_t ignored = 0;
        [[maybe_unused]] const auto n = ::read(wake_, &ignored, sizeof ignored);
      }
      if (listener_ >= 0 && stopping_) {
        ::close(listener_);
        listener_ = -1;
      }
      if (listener_ >= 0) {
        accept_failed = !accept_all();
      }
    }
    if (listener_ >= 0) {
      ::close(listener_);
    }
  }

  // Joins the threads that ended. True: stopping and none is left.
  bool reap() {
    std::list<Connection> ended;
    bool finished = false;
    {
      const std::lock_guard lock(mutex_);
      for (auto it = connections_.begin(); it != connections_.end();) {
        const auto next = std::next(it);
        if (it->done) {
          ended.splice(ended.end(), connections_, it);
        }
        it = next;
      }
      finished = stopping_ && connections_.empty();
    }
    for (Connection& c : ended) {
      c.thread.join();
    }
    return finished;
  }

  bool accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) {
        if (errno == EINTR || errno == ECONNABORTED) {
          continue;
        }
        return errno == EAGAIN || errno == EWOULDBLOCK;
      }
      tune(fd);
      begin(fd);
    }
  }

  void begin(int fd) {
    const std::lock_guard lock(mutex_);
    if (open_ >= options_.max_connections) {
      Socket refused(fd);
      (void)refused.write_all(
          "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Length: "
          "21\r\n\r\n",
          "too many connections\n", steady_clock::now());
      return;
    }
    Connection& c = connections_.emplace_back(fd);
    try {
      c.thread = std::thread([this, &c] { serve(c); });
      ++open_;
    } catch (const std::system_error&) {  // out of threads
      connections_.pop_back();
    }
  }

  void serve(Connection& c) {
    beast::flat_buffer buffer(options_.max_header + 65536);
    bool gently = false;
    while (serve_one(c, buffer, gently)) {
    }
    if (gently) {
      c.socket.linger();
    }
    const std::lock_guard lock(mutex_);
    c.socket.close();
    c.done = true;
    --open_;
    changed_.notify_all();
    wake();
  }

  // One request and its answer. False: close the connection.
  bool serve_one(Connection& c, beast::flat_buffer& buffer, bool& gently) {
    if (!await_request(c, buffer)) {
      return false;
    }
    c.socket.set_read_deadline(steady_clock::now() + options_.read_timeout);
    beast::http::request_parser<beast::http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(options_.max_header));
    parser.body_limit(options_.max_body);

    error_code ec;
    beast::http::read_header(c.socket, buffer, parser, ec);
    const unsigned version = parser.get().version();
    Writer::Terms terms;
    terms.chunked = version >= 11;
    if (!ec && parser.get()[beast::http::field::expect] == "100-continue" && !parser.is_done()) {
      (void)c.socket.write_all("HTTP/1.1 100 Continue\r\n\r\n", {},
                               steady_clock::now() + options_.write_timeout);
    }
    if (!ec && !parser.is_done()) {
      beast::http::read(c.socket, buffer, parser, ec);
    }
    std::optional<Refusal> refusal;
    if (ec) {
      refusal = refusal_for(ec, options_);
      if (!refusal) {
        return false;
      }
    } else if (version >= 11 && parser.get().count(beast::http::field::host) != 1) {
      refusal = Refusal{400, "an HTTP/1.1 request needs exactly one Host header\n"};
    } else if (!parser.get().target().starts_with('/')) {
      refusal = Refusal{400, "request target: only paths are served\n"};
    }
    if (refusal) {
      Writer writer(c.socket, options_.write_timeout, terms, stopping_);
      (void)writer.respond(refusal->status, "text/plain", refusal->text, {});
      gently = true;
      return false;
    }

    terms.keep_alive = parser.keep_alive();
    terms.head_only = parser.get().method() == beast::http::verb::head;
    const Request request = take(parser.release(), c.socket);
    Writer writer(c.socket, options_.write_timeout, terms, stopping_);
    run_handler(request, writer);
    return writer.reusable() && !stopping_;
  }

  // Waits for the first byte of a request. False: none came, the client closed, or the server stops.
  bool await_request(Connection& c, const beast::flat_buffer& buffer) {
    {
      const std::lock_guard lock(mutex_);
      c.idle = buffer.size() == 0;
      if (stopping_) {
        return false;
      }
    }
    const bool readable =
        buffer.size() > 0 || c.socket.wait_readable(steady_clock::now() + options_.idle_timeout);
    const std::lock_guard lock(mutex_);
    c.idle = false;
    return readable && !stopping_;
  }

  static Request take(beast::http::request<beast::http::string_body> message, const Socket& socket) {
    Request request;
    request.method = std::string(message.method_string());
    request.target = std::string(message.target());
    const auto question = request.target.find('?');
    request.path = request.target.substr(0, question);
    request.query = question == std::string::npos ? "" : request.target.substr(question + 1);
    for (const auto& field : message) {
      request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    request.body = std::move(message.body());
    request.local_address = socket.local_address();
    return request;
  }

  void run_handler(const Request& request, Writer& writer) {
    ++in_flight_;
    try {
      handler_(request, writer);
    } catch (const std::exception& e) {
      spdlog::error("http: handler of {} failed: {}", request.path, e.what());
    } catch (...) {
      spdlog::error("http: handler of {} failed", request.path);
    }
    if (writer.untouched() && !writer.client_gone()) {
      (void)writer.respond(500, "text/plain", "internal error\n", {});
    }
    --in_flight_;
  }

  const ServerOptions options_;
  const Handler handler_;
  int listener_;
  const int wake_;  // eventfd: a connection ended, or stop
  const std::uint16_t port_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> in_flight_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Connection> connections_;  // guarded by mutex_; addresses are stable
  std::size_t open_ = 0;               // connections not done; guarded by mutex_
  std::mutex stop_mutex_;
  std::thread acceptor_;  // last: it uses all of the above
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
std::uint16_t Server::port() const { return impl_->port(); }
std::size_t Server::connections() const { return impl_->connections(); }
std::size_t Server::in_flight() const { return impl_->in_flight(); }
void Server::stop(std::chrono::milliseconds grace) { impl_->stop(grace); }

Result<std::unique_ptr<Server>> Server::listen(ServerOptions options, Handler handler) {
  auto listener = listen_on(options.address, options.port, kBacklog);
  if (!listener) {
    return failure(listener.error());
  }
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) {
    ::close(*listener);
    return failure(Code::kUnavailable, "eventfd: out of file descriptors");
  }
  return std::unique_ptr<Server>(
      new Server(std::make_unique<Impl>(std::move(options), std::move(handler), *listener, wake)));
}

}  // namespace eldr::http

// SPDX-License-Identifier: Apache-2.0
#include "router/server/server.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_set>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "router/server/api_error.h"
#include "router/server/load_poller.h"
#include "router/server/session.h"

namespace eldr::router {

namespace asio = boost::asio;
using asio::ip::tcp;

/// One event loop with the sessions that live on it.
class LoopThread {
 public:
  LoopThread(ServerShared& shared, std::uint64_t seed, Milliseconds load_poll,
             std::function<void()> on_connection_end)
      : work_(asio::make_work_guard(io_)),
        context_(shared, io_, seed),
        poller_(context_, load_poll),
        housekeeping_(io_),
        on_connection_end_(std::move(on_connection_end)) {}

  asio::io_context& io() { return io_; }

  void start() {
    context_.deadlines.start();
    poller_.start();
    sweep_later();
    thread_ = std::thread([this] { io_.run(); });
  }

  /// On any thread.
  void adopt(tcp::socket socket) {
    asio::post(io_, [this, socket = std::move(socket)]() mutable { open(std::move(socket)); });
  }
  void close_idle() {
    asio::post(io_, [this] {
      draining_ = true;
      for (auto* session : sessions_) session->close_if_idle();
    });
  }
  /// Ends every session and waits until the loop has nothing left to do.
  void stop() {
    if (!thread_.joinable()) return;
    asio::post(io_, [this] {
      stopped_ = true;
      for (auto* session : sessions_) session->close_now();
      poller_.stop();
      context_.pool.clear();
      housekeeping_.cancel();
      end_when_idle();
    });
    thread_.join();
  }

 private:
  void open(tcp::socket socket) {
    auto session = std::make_shared<Session>(context_, std::move(socket));
    if (draining_ || stopped_) return connection_ended();
    sessions_.insert(session.get());
    asio::co_spawn(
        io_, [session] { return session->run(); },
        [this, session](std::exception_ptr) {
          sessions_.erase(session.get());
          connection_ended();
        });
  }

  void connection_ended() {
    --context_.shared.metrics.connections;
    on_connection_end_();
  }

  /// Coroutines end by themselves once their sockets are closed; deadlines tick until the last one has.
  void end_when_idle() {
    if (sessions_.empty() && poller_.idle()) {
      context_.deadlines.stop();
      work_.reset();
      return;
    }
    housekeeping_.expires_after(Milliseconds(1));
    housekeeping_.async_wait([this](const boost::system::error_code&) { end_when_idle(); });
  }

  void sweep_later() {
    housekeeping_.expires_after(std::chrono::seconds(1));
    housekeeping_.async_wait([this](const boost::system::error_code& error) {
      if (error || stopped_) return;
      context_.pool.sweep();
      sweep_later();
    });
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  ThreadContext context_;
  LoadPoller poller_;
  asio::steady_timer housekeeping_;
  const std::function<void()> on_connection_end_;
  std::unordered_set<Session*> sessions_;
  bool draining_ = false;
  bool stopped_ = false;
  std::thread thread_;
};

class DataServer::Impl {
 public:
  Impl(ServerShared& shared, Options options) : shared_(shared), options_(std::move(options)) {
    const std::size_t count =
        options_.threads > 0 ? options_.threads : std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 0; i < count; ++i)
      loops_.push_back(std::make_unique<LoopThread>(shared_, mix(options_.seed + i),
                                                    i == 0 ? options_.load_poll : Milliseconds{0},
                                                    [this] { connection_ended(); }));
    acceptor_.emplace(loops_.front()->io());
    retry_.emplace(loops_.front()->io());
  }
  ~Impl() { stop(); }

  Status listen() {
    boost::system::error_code error;
    const auto address = asio::ip::make_address(options_.listen.address, error);
    const std::string where = options_.listen.address + ":" + std::to_string(options_.listen.port);
    if (error) return failure(Code::kInvalid, "listen " + where + ": " + error.message());
    const tcp::endpoint endpoint(address, options_.listen.port);
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error) return failure(Code::kUnavailable, "listen " + where + ": " + error.message());
    port_ = acceptor_->local_endpoint(error).port();
    accept();
    for (auto& loop : loops_) loop->start();
    return {};
  }

  std::uint16_t port() const { return port_; }

  bool drain(Milliseconds limit) {
    shared_.metrics.draining = true;
    close_acceptor();
    for (auto& loop : loops_) loop->close_idle();
    std::unique_lock lock(mutex_);
    return ended_.wait_for(lock, limit, [this] { return shared_.metrics.connections == 0; });
  }

  void stop() {
    if (stopped_.exchange(true)) return;
    close_acceptor();
    for (auto& loop : loops_) loop->stop();
  }

 private:
  void connection_ended() {
    const std::lock_guard lock(mutex_);
    ended_.notify_all();
  }

  void close_acceptor() {
    asio::post(loops_.front()->io(), [this] {
      boost::system::error_code ignored;
      acceptor_->close(ignored);
      retry_->cancel();
    });
  }

  /// Connections go round the threads, each accepted into the loop that will serve it.
  void accept() {
    auto& loop = *loops_[next_++ % loops_.size()];
    acceptor_->async_accept(
        loop.io(), [this, &loop](const boost::system::error_code& error, tcp::socket socket) {
          if (!acceptor_->is_open()) return;
          if (error) return accept_later();  // out of descriptors, most likely: let some close first
          if (++shared_.metrics.connections > shared_.limits.connections)
            turn_away(std::move(socket));
          else
            loop.adopt(std::move(socket));
          accept();
        });
  }

  void accept_later() {
    retry_->expires_after(Milliseconds(50));
    retry_->async_wait([this](const boost::system::error_code& error) {
      if (!error && acceptor_->is_open()) accept();
    });
  }

  /// One more connection than allowed: a short answer, as far as the socket takes it without waiting.
  void turn_away(tcp::socket socket) {
    --shared_.metrics.connections;
    shared_.metrics.refused(Refusal::kConnections);
    const std::string answer = error_answer(503, "the router has as many connections as it may, try again",
                                            false, {{"Retry-After", "1"}});
    boost::system::error_code ignored;
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(answer), 0, ignored);
    socket.shutdown(tcp::socket::shutdown_both, ignored);
  }

  ServerShared& shared_;
  const Options options_;
  std::vector<std::unique_ptr<LoopThread>> loops_;
  std::optional<tcp::acceptor> acceptor_;
  std::optional<asio::steady_timer> retry_;
  std::size_t next_ = 0;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::atomic<bool> stopped_{false};
};

DataServer::DataServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DataServer::~DataServer() = default;

Result<std::unique_ptr<DataServer>> DataServer::start(ServerShared& shared, Options options) {
  auto impl = std::make_unique<Impl>(shared, std::move(options));
  if (auto status = impl->listen(); !status) return failure(status.error());
  return std::unique_ptr<DataServer>(new DataServer(std::move(impl)));
}

std::uint16_t DataServer::port() const { return impl_->port(); }
bool DataServer::drain(std::chrono::milliseconds limit) { return impl_->drain(limit); }
void DataServer::stop() { impl_->stop(); }

}  // namespace eldr::router

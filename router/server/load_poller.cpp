// SPDX-License-Identifier: Apache-2.0
#include "router/server/load_poller.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace eldr::router {
namespace {

namespace asio = boost::asio;
constexpr std::size_t kMaxMetricsPage = 8U << 20U;
constexpr Milliseconds kAnswerTime{2000};

}  // namespace

LoadPoller::LoadPoller(ThreadContext& thread, Milliseconds period)
    : thread_(thread), period_(period), timer_(thread.io) {}

void LoadPoller::start() {
  if (period_.count() == 0) return;
  running_ = true;
  asio::co_spawn(
      thread_.io, [this] { return run(); }, asio::detached);
}

void LoadPoller::stop() {
  stopped_ = true;
  timer_.cancel();
  for (const auto& [worker, call] : asked_)
    if (call != nullptr) call->cancel();
}

Async<void> LoadPoller::run() {
  while (!stopped_) {
    const auto workers = thread_.shared.workers->snapshot();
    for (const auto& worker : workers->decode) {
      if (!asked_.emplace(worker, nullptr).second) continue;
      asio::co_spawn(
          thread_.io, [this, worker] { return ask(worker); }, asio::detached);
    }
    boost::system::error_code error;
    timer_.expires_after(period_);
    co_await timer_.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
  running_ = false;
}

Async<void> LoadPoller::ask(WorkerPtr worker) {
  UpstreamCall call(thread_.upstream(), worker->host, worker->port, worker->authority);
  asked_[worker] = &call;
  const std::string head = "GET /metrics HTTP/1.1\r\nHost: " + worker->authority + "\r\n\r\n";
  const auto own_before = worker->load.own();
  const auto due = thread_.deadlines.now() + kAnswerTime;
  const std::vector<std::string_view> no_body;
  std::string page;
  CallEnd end = CallEnd::kCancelled;
  if (!stopped_) end = co_await call.ask(head, no_body, due);
  if (end == CallEnd::kOk) end = co_await call.read_body(page, kMaxMetricsPage, due);
  std::optional<std::uint32_t> reported;
  if (end == CallEnd::kOk && call.answer().status == 200) reported = requests_in_metrics(page);
  if (reported)
    worker->load.polled(*reported, own_before, thread_.shared.clock.steady());
  else if (end != CallEnd::kCancelled)
    thread_.shared.metrics.load_poll_failed();
  asked_.erase(worker);
}

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/work_queue.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lib/kube/rate_limiter.h"

namespace eldr::kube {
namespace {

/// How often a waiting get() looks at the clock, so that one that jumps is noticed.
constexpr std::chrono::nanoseconds kLongestNap = std::chrono::seconds(1);

class NoMetrics final : public WorkQueueMetrics {
 public:
  void depth(std::size_t) override {}
  void added() override {}
  void retried() override {}
  void waited(double) override {}
  void worked(double) override {}
};

WorkQueueMetrics& no_metrics() {
  static NoMetrics none;
  return none;
}

double seconds(Clock::Steady from, Clock::Steady to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

// A key is in `dirty` while somebody wants it worked on, in `processing` while a worker has it, and in
// `ready` exactly when it is dirty and not processing. All sets hold distinct keys, so they are bounded by
// the number of objects.
struct WorkQueue::Private {
  Private(const Clock& clock, const WorkQueueOptions& options, WorkQueueMetrics& metrics)
      : clock(clock),
        metrics(metrics),
        backoff(options.backoff_first, options.backoff_longest),
        bucket(options.retries_per_second, options.retries_burst) {}

  const Clock& clock;
  WorkQueueMetrics& metrics;
  mutable std::mutex mutex;
  std::condition_variable changed;

  std::deque<ObjectKey> ready;
  std::unordered_map<ObjectKey, Clock::Steady> dirty;       ///< since when
  std::unordered_map<ObjectKey, Clock::Steady> processing;  ///< since when
  std::unordered_map<ObjectKey, Clock::Steady> due;         ///< delayed keys
  std::set<std::pair<Clock::Steady, ObjectKey>> schedule;   ///< the same, by time
  ItemBackoff backoff;
  TokenBucket bucket;
  bool shut_down = false;

  void add(const ObjectKey& key) {
    if (shut_down || !dirty.emplace(key, clock.steady()).second) {
      return;
    }
    metrics.added();
    if (!processing.contains(key)) {
      push(key);
    }
  }
  void push(const ObjectKey& key) {
    ready.push_back(key);
    metrics.depth(ready.size());
    changed.notify_one();
  }
  void add_after(const ObjectKey& key, std::chrono::nanoseconds delay) {
    if (shut_down) {
      return;
    }
    if (delay <= std::chrono::nanoseconds(0)) {
      return add(key);
    }
    const auto time = clock.steady() + delay;
    const auto [known, is_new] = due.emplace(key, time);
    if (!is_new) {
      if (known->second <= time) {
        return;
      }
      schedule.erase({known->second, key});
      known->second = time;
    }
    schedule.emplace(time, key);
    changed.notify_all();  // a waiting get() may have to wake earlier
  }
  void add_what_is_due() {
    const auto now = clock.steady();
    while (!schedule.empty() && schedule.begin()->first <= now) {
      const ObjectKey key = schedule.begin()->second;
      schedule.erase(schedule.begin());
      due.erase(key);
      add(key);
    }
  }
  std::optional<ObjectKey> take() {
    add_what_is_due();
    if (ready.empty()) {
      return std::nullopt;
    }
    ObjectKey key = std::move(ready.front());
    ready.pop_front();
    const auto now = clock.steady();
    const auto since = dirty.find(key);
    metrics.waited(seconds(since->second, now));
    metrics.depth(ready.size());
    dirty.erase(since);
    processing.emplace(key, now);
    return key;
  }
  void close() {
    shut_down = true;
    due.clear();
    schedule.clear();
    changed.notify_all();
  }
};

WorkQueue::WorkQueue(const Clock& clock, WorkQueueOptions options, WorkQueueMetrics* metrics)
    : private_(std::make_unique<Private>(clock, options, metrics != nullptr ? *metrics : no_metrics())) {}
WorkQueue::~WorkQueue() = default;

void WorkQueue::add(const ObjectKey& key) {
  const std::lock_guard lock(private_->mutex);
  private_->add(key);
}

void WorkQueue::add_after(const ObjectKey& key, std::chrono::nanoseconds delay) {
  const std::lock_guard lock(private_->mutex);
  private_->add_after(key, delay);
}

void WorkQueue::add_rate_limited(const ObjectKey& key, std::chrono::nanoseconds at_least) {
  const std::lock_guard lock(private_->mutex);
  if (private_->shut_down) {
    return;
  }
  const auto delay =
      std::max({private_->backoff.next(key), private_->bucket.reserve(private_->clock.steady()), at_least});
  private_->metrics.retried();
  private_->add_after(key, delay);
}

void WorkQueue::forget(const ObjectKey& key) {
  const std::lock_guard lock(private_->mutex);
  private_->backoff.forget(key);
}

int WorkQueue::failures(const ObjectKey& key) const {
  const std::lock_guard lock(private_->mutex);
  return private_->backoff.failures(key);
}

std::optional<ObjectKey> WorkQueue::get() {
  std::unique_lock lock(private_->mutex);
  for (;;) {
    if (auto key = private_->take()) {
      return key;
    }
    if (private_->shut_down) {
      return std::nullopt;
    }
    auto nap = kLongestNap;
    if (!private_->schedule.empty()) {
      nap = std::min<std::chrono::nanoseconds>(nap,
                                               private_->schedule.begin()->first - private_->clock.steady());
    }
    private_->changed.wait_for(lock, nap);
  }
}

std::optional<ObjectKey> WorkQueue::try_get() {
  const std::lock_guard lock(private_->mutex);
  return private_->take();
}

void WorkQueue::done(const ObjectKey& key) {
  const std::lock_guard lock(private_->mutex);
  const auto since = private_->processing.find(key);
  if (since == private_->processing.end()) {
    return;
  }
  private_->metrics.worked(seconds(since->second, private_->clock.steady()));
  private_->processing.erase(since);
  if (private_->dirty.contains(key)) {
    private_->push(key);
  }
  if (private_->shut_down) {
    private_->changed.notify_all();
  }
}

void WorkQueue::shut_down() {
  const std::lock_guard lock(private_->mutex);
  private_->close();
}

bool WorkQueue::shut_down_with_drain(std::chrono::milliseconds longest) {
  std::unique_lock lock(private_->mutex);
  private_->close();
  return private_->changed.wait_for(
      lock, longest, [this] { return private_->processing.empty() && private_->ready.empty(); });
}

bool WorkQueue::is_shut_down() const {
  const std::lock_guard lock(private_->mutex);
  return private_->shut_down;
}

std::size_t WorkQueue::depth() const {
  const std::lock_guard lock(private_->mutex);
  return private_->ready.size();
}

std::size_t WorkQueue::delayed() const {
  const std::lock_guard lock(private_->mutex);
  return private_->due.size();
}

std::optional<Clock::Steady> WorkQueue::next_due() const {
  const std::lock_guard lock(private_->mutex);
  if (private_->schedule.empty()) {
    return std::nullopt;
  }
  return private_->schedule.begin()->first;
}

}  // namespace eldr::kube

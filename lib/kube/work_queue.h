// SPDX-License-Identifier: Apache-2.0
// The queue between informers and reconcilers, with the promises of client-go's: duplicates collapse; one key
// is never given to two workers at once; a key added while it is worked on is given out again afterwards.
//
// Thread-safety: all methods may be called from any thread. The clock and the metrics must outlive the queue.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "lib/base/clock.h"
#include "lib/kube/resource.h"

namespace eldr::kube {

/// Told about the queue's life; see metrics.h. Called with the queue's lock held: must not call back.
class WorkQueueMetrics {
 public:
  virtual ~WorkQueueMetrics() = default;
  virtual void depth(std::size_t keys) = 0;
  virtual void added() = 0;
  virtual void retried() = 0;
  virtual void waited(double seconds) = 0;  ///< from add to get
  virtual void worked(double seconds) = 0;  ///< from get to done
};

struct WorkQueueOptions {
  std::chrono::nanoseconds backoff_first = std::chrono::milliseconds(5);
  std::chrono::nanoseconds backoff_longest = std::chrono::seconds(1000);
  double retries_per_second = 10;  ///< of all keys together
  double retries_burst = 100;
};

class WorkQueue {
 public:
  explicit WorkQueue(const Clock& clock, WorkQueueOptions options = {}, WorkQueueMetrics* metrics = nullptr);
  ~WorkQueue();  ///< no other thread may be inside
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// Now. Nothing happens after shutdown.
  void add(const ObjectKey& key);
  /// After a time, without touching the key's failures ("requeue after"). The earliest of several wins.
  void add_after(const ObjectKey& key, std::chrono::nanoseconds delay);
  /// After the key's backoff, or the bucket's wait if that is longer; counts as a failure of the key.
  /// `at_least` is what the server asked for (Retry-After).
  void add_rate_limited(const ObjectKey& key,
                        std::chrono::nanoseconds at_least = std::chrono::nanoseconds(0));
  /// The key did well: its backoff starts anew.
  void forget(const ObjectKey& key);
  int failures(const ObjectKey& key) const;

  /// Waits for a key; nothing once the queue is shut down and empty. Call done() with each key you got.
  std::optional<ObjectKey> get();
  /// The same without waiting.
  std::optional<ObjectKey> try_get();
  void done(const ObjectKey& key);

  /// Takes no more keys and drops the delayed ones; get() gives out what is left, then nothing.
  void shut_down();
  /// The same, and waits until every key given out is done; false when `longest` passed before.
  bool shut_down_with_drain(std::chrono::milliseconds longest);
  bool is_shut_down() const;

  std::size_t depth() const;    ///< keys ready to be given out
  std::size_t delayed() const;  ///< keys that wait for their time
  /// When the next delayed key is due; nothing when there is none. For tests and for loops without threads.
  std::optional<Clock::Steady> next_due() const;

 private:
  struct Private;
  std::unique_ptr<Private> private_;
};

}  // namespace eldr::kube

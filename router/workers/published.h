// SPDX-License-Identifier: Apache-2.0
// A value that readers take whole while others replace it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace eldr::router {

/// Thread-safe; the lock is held for the copy of a pointer. What std::atomic<std::shared_ptr> would be, but
/// its load() in libstdc++ 12 ends with a relaxed unlock: a store after it is a data race on what load()
/// read.
template <class T>
class Published {
 public:
  Published() = default;
  explicit Published(std::shared_ptr<const T> value) : value_(std::move(value)) {}

  std::shared_ptr<const T> load() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  void store(std::shared_ptr<const T> value) {
    const std::lock_guard lock(mutex_);
    value_.swap(value);  // the old value goes with the parameter, after the lock
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const T> value_;
};

}  // namespace eldr::router

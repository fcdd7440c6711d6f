// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace eldr::calibrator {

void parallel_for(std::size_t tasks, unsigned threads,
                  const std::function<void(std::size_t task, unsigned worker)>& body) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr first_failure;
  const auto work = [&](unsigned worker) {
    try {
      for (std::size_t task = next.fetch_add(1); task < tasks; task = next.fetch_add(1)) {
        body(task, worker);
      }
    } catch (...) {
      next.store(tasks);
      const std::lock_guard lock(mutex);
      if (!first_failure) {
        first_failure = std::current_exception();
      }
    }
  };
  {
    const auto extra = std::min<std::size_t>(std::max(threads, 1U), std::max<std::size_t>(tasks, 1)) - 1;
    std::vector<std::jthread> others;
    others.reserve(extra);
    try {
      for (std::size_t i = 0; i < extra; ++i) {
        others.emplace_back(work, static_cast<unsigned>(i + 1));
      }
    } catch (const std::system_error&) {
      // No room for another thread: those that run share the tasks.
    }
    work(0);
  }
  if (first_failure) {
    std::rethrow_exception(first_failure);
  }
}

}  // namespace eldr::calibrator

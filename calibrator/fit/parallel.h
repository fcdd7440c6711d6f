// SPDX-License-Identifier: Apache-2.0
// Running independent tasks on a few threads. Which thread runs which task is never part of a result: a task
// writes only to its own slot, so the same input gives the same bytes on any number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace eldr::calibrator {

/// Calls `body(task, worker)` once for every task in [0, tasks), on at most `threads` threads (the caller's
/// included); `worker` < max(threads, 1) names the thread, for scratch memory. Returns when all have ended.
/// The first exception of a body (std::bad_alloc) is thrown again here, after the running bodies have ended.
void parallel_for(std::size_t tasks, unsigned threads,
                  const std::function<void(std::size_t task, unsigned worker)>& body);

}  // namespace eldr::calibrator

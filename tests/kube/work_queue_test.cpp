// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/work_queue.h"

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lib/kube/rate_limiter.h"
#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;

const ObjectKey kA{"ns", "a"};
const ObjectKey kB{"ns", "b"};

class WorkQueueTest : public ::testing::Test {
 protected:
  testing::FakeClock clock;
  WorkQueue queue{clock};
};

TEST_F(WorkQueueTest, DuplicatesCollapseAndOrderIsKept) {
  queue.add(kA);
  queue.add(kB);
  queue.add(kA);
  EXPECT_EQ(queue.depth(), 2U);
  EXPECT_EQ(queue.try_get(), kA);
  EXPECT_EQ(queue.try_get(), kB);
  EXPECT_EQ(queue.try_get(), std::nullopt);
}

TEST_F(WorkQueueTest, KeyAddedWhileWorkedOnComesAgainAfterDone) {
  queue.add(kA);
  ASSERT_EQ(queue.try_get(), kA);
  queue.add(kA);
  queue.add(kA);
  EXPECT_EQ(queue.try_get(), std::nullopt) << "never at two workers at once";
  queue.done(kA);
  EXPECT_EQ(queue.try_get(), kA);
  queue.done(kA);
  EXPECT_EQ(queue.try_get(), std::nullopt);
}

TEST_F(WorkQueueTest, FailuresBackOffDoublingAndForgetStartsAnew) {
  for (const auto expected : {5ms, 10ms, 20ms, 40ms}) {
    queue.add_rate_limited(kA);
    EXPECT_EQ(*queue.next_due() - clock.steady(), expected);
    clock.advance(expected);
    ASSERT_EQ(queue.try_get(), kA);
    queue.done(kA);
  }
  EXPECT_EQ(queue.failures(kA), 4);
  queue.forget(kA);
  EXPECT_EQ(queue.failures(kA), 0);
  queue.add_rate_limited(kA);
  EXPECT_EQ(*queue.next_due() - clock.steady(), 5ms);
}

TEST_F(WorkQueueTest, BackoffEndsAtAThousandSeconds) {
  for (int i = 0; i < 100; ++i) {
    queue.add_rate_limited(kA);
    clock.advance(1000s);
    ASSERT_EQ(queue.try_get(), kA) << i;
    queue.done(kA);
  }
  queue.add_rate_limited(kA);
  EXPECT_EQ(*queue.next_due() - clock.steady(), 1000s);
}

TEST_F(WorkQueueTest, BucketSlowsManyKeysDown) {
  for (int i = 0; i < 100; ++i) {
    queue.add_rate_limited({"ns", std::to_string(i)});
  }
  clock.advance(5ms);
  int ready = 0;
  while (queue.try_get()) {
    ++ready;
  }
  EXPECT_EQ(ready, 100) << "the burst";
  for (int i = 0; i < 20; ++i) {
    queue.add_rate_limited({"ns", "x" + std::to_string(i)});
  }
  clock.advance(1s);
  ready = 0;
  while (queue.try_get()) {
    ++ready;
  }
  EXPECT_NEAR(ready, 10, 1);
}

TEST_F(WorkQueueTest, RetryAfterIsALowerBound) {
  queue.add_rate_limited(kA, 3s);
  EXPECT_EQ(*queue.next_due() - clock.steady(), 3s);
}

TEST_F(WorkQueueTest, AddAfterDoesNotTouchFailuresAndTheEarliestWins) {
  queue.add_after(kA, 10s);
  queue.add_after(kA, 2s);
  queue.add_after(kA, 30s);
  EXPECT_EQ(queue.delayed(), 1U);
  EXPECT_EQ(queue.failures(kA), 0);
  clock.advance(1999ms);
  EXPECT_EQ(queue.try_get(), std::nullopt);
  clock.advance(1ms);
  EXPECT_EQ(queue.try_get(), kA);
  EXPECT_EQ(queue.delayed(), 0U);
}

TEST_F(WorkQueueTest, ShutDownGivesOutWhatIsLeftAndDropsTheRest) {
  queue.add(kA);
  queue.add_after(kB, 1s);
  queue.shut_down();
  queue.add({"ns", "c"});
  EXPECT_EQ(queue.get(), kA);
  queue.done(kA);
  EXPECT_EQ(queue.get(), std::nullopt);
  clock.advance(10s);
  EXPECT_EQ(queue.get(), std::nullopt);
}

TEST_F(WorkQueueTest, DrainWaitsForTheWorker) {
  queue.add(kA);
  ASSERT_EQ(queue.try_get(), kA);
  EXPECT_FALSE(queue.shut_down_with_drain(10ms));
  std::jthread worker([&] {
    std::this_thread::sleep_for(20ms);
    queue.done(kA);
  });
  EXPECT_TRUE(queue.shut_down_with_drain(10s));
}

TEST_F(WorkQueueTest, ShutDownWakesWaitingWorkers) {
  std::atomic<int> ended{0};
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([&] {
        while (auto key = queue.get()) {
          queue.done(*key);
        }
        ++ended;
      });
    }
    queue.add(kA);
    queue.shut_down();
  }
  EXPECT_EQ(ended, 4);
}

// Against a straightforward model: a key is given out exactly when it is wanted, ready and nobody has it.
TEST_F(WorkQueueTest, RandomOperationsAgreeWithAModel) {
  std::mt19937 random(11);
  std::set<ObjectKey> wanted, working;
  std::map<ObjectKey, Clock::Steady> later;
  for (int i = 0; i < 50'000; ++i) {
    const ObjectKey key{"ns", std::to_string(random() % 6)};
    switch (random() % 5) {
      case 0:
        queue.add(key);
        wanted.insert(key);
        break;
      case 1: {
        const auto delay = std::chrono::milliseconds(1 + random() % 20);
        queue.add_after(key, delay);
        const auto due = clock.steady() + delay;
        const auto [at, fresh] = later.emplace(key, due);
        at->second = fresh ? due : std::min(at->second, due);
        break;
      }
      case 2:
        clock.advance(std::chrono::milliseconds(random() % 10));
        break;
      case 3: {
        for (auto at = later.begin(); at != later.end();) {
          if (at->second <= clock.steady()) {
            wanted.insert(at->first);
            at = later.erase(at);
          } else {
            ++at;
          }
        }
        const auto got = queue.try_get();
        bool any = false;
        for (const auto& candidate : wanted) {
          any = any || working.count(candidate) == 0;
        }
        ASSERT_EQ(got.has_value(), any) << i;
        if (got) {
          ASSERT_EQ(wanted.count(*got), 1U) << i;
          ASSERT_EQ(working.count(*got), 0U) << i;
          wanted.erase(*got);
          working.insert(*got);
        }
        break;
      }
      default:
        if (!working.empty()) {
          const ObjectKey finished = *working.begin();
          queue.done(finished);
          working.erase(finished);
        }
    }
  }
}

TEST(WorkQueueThreads, NoKeyIsAtTwoWorkersAndNoneIsLost) {
  const RealClock clock;
  WorkQueue queue(clock);
  constexpr int kKeys = 20;
  std::mutex mutex;
  std::set<ObjectKey> busy;
  std::map<ObjectKey, int> seen;
  std::atomic<bool> overlap{false};
  std::vector<std::atomic<int>> state(kKeys);  // what a key stands for
  std::vector<std::atomic<int>> known(kKeys);  // what a worker last saw of it
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (auto key = queue.get()) {
        {
          const std::lock_guard lock(mutex);
          overlap = overlap || !busy.insert(*key).second;
        }
        const auto index = static_cast<std::size_t>(std::stoi(key->name));
        known[index] = state[index].load();
        {
          const std::lock_guard lock(mutex);
          busy.erase(*key);
          ++seen[*key];
        }
        queue.done(*key);
      }
    });
  }
  for (int i = 0; i < 5000; ++i) {
    const auto index = static_cast<std::size_t>(i % kKeys);
    ++state[index];
    if (i % 7 == 0) {
      queue.add_after({"ns", std::to_string(index)}, 1ms);
    } else {
      queue.add({"ns", std::to_string(index)});
    }
  }
  for (int i = 0; i < kKeys; ++i) {
    queue.add({"ns", std::to_string(i)});
  }
  EXPECT_TRUE(queue.shut_down_with_drain(10s));
  workers.clear();
  EXPECT_FALSE(overlap);
  for (std::size_t i = 0; i < kKeys; ++i) {
    EXPECT_EQ(known[i], state[i]) << "the last change of key " << i << " was not seen";
  }
}

TEST_F(WorkQueueTest, MetricsTellDepthWaitsAndRetries) {
  struct Counts final : WorkQueueMetrics {
    void depth(std::size_t keys) override { last_depth = keys; }
    void added() override { ++adds; }
    void retried() override { ++retries; }
    void waited(double seconds) override { wait += seconds; }
    void worked(double seconds) override { work += seconds; }
    std::size_t last_depth = 99;
    int adds = 0, retries = 0;
    double wait = 0, work = 0;
  } counts;
  WorkQueue measured(clock, {}, &counts);
  measured.add(kA);
  measured.add(kA);
  EXPECT_EQ(counts.adds, 1);
  EXPECT_EQ(counts.last_depth, 1U);
  clock.advance(2s);
  (void)measured.try_get();
  EXPECT_EQ(counts.last_depth, 0U);
  EXPECT_DOUBLE_EQ(counts.wait, 2);
  clock.advance(3s);
  measured.done(kA);
  EXPECT_DOUBLE_EQ(counts.work, 3);
  measured.add_rate_limited(kA);
  EXPECT_EQ(counts.retries, 1);
}

TEST(TokenBucketTest, NeverGivesMoreThanItsRateOverTime) {
  TokenBucket bucket(10, 100);
  testing::FakeClock clock;
  std::mt19937 random(3);
  double granted = 0;
  const auto begin = clock.steady();
  for (int i = 0; i < 5000; ++i) {
    clock.advance(std::chrono::microseconds(random() % 200'000));
    if (bucket.reserve(clock.steady()) == 0ns) {
      ++granted;
    }
  }
  const double elapsed = std::chrono::duration<double>(clock.steady() - begin).count();
  EXPECT_LE(granted, 100 + 10 * elapsed + 1);
}

}  // namespace
}  // namespace eldr::kube

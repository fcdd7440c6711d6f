// SPDX-License-Identifier: Apache-2.0
#include "router/workers/load.h"

#include <gtest/gtest.h>

namespace eldr::router {
namespace {

const Clock::Steady kNow = Clock::Steady{} + std::chrono::hours(1);

TEST(Load, AloneItIsExactHoweverOldThePoll) {
  Load load;
  for (int i = 0; i < 5; ++i) load.began();
  load.polled(5, 5, kNow);
  EXPECT_EQ(load.total(kNow), 5U);
  load.began();
  load.ended();
  load.ended();
  EXPECT_EQ(load.total(kNow + std::chrono::seconds(3)), 4U);
}

TEST(Load, OthersRequestsAreAddedToOwnDecisionsSinceThePoll) {
  Load load;
  load.began();
  load.polled(8, 1, kNow);  // seven of others
  EXPECT_EQ(load.total(kNow), 8U);
  load.began();
  load.began();
  EXPECT_EQ(load.total(kNow), 10U);
}

TEST(Load, ARequestThatBeganDuringThePollIsNotCountedTwice) {
  Load load;
  const auto before = load.own();
  load.began();  // reached the worker before it counted
  load.polled(1, before, kNow);
  EXPECT_EQ(load.total(kNow), 1U);
}

TEST(Load, AnOldPollIsForgotten) {
  Load load;
  load.polled(9, 0, kNow);
  EXPECT_EQ(load.total(kNow + Load::kPollLifetime), 9U);
  EXPECT_EQ(load.total(kNow + Load::kPollLifetime + std::chrono::milliseconds(1)), 0U);
}

TEST(MetricsPage, SumsRunningAndWaitingOverEngines) {
  EXPECT_EQ(requests_in_metrics("# HELP vllm:num_requests_running Number\n"
                                "# TYPE vllm:num_requests_running gauge\n"
                                "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 3.0\n"
                                "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 2.0\n"
                                "vllm:num_requests_waiting{engine=\"0\"} 1.0 1700000000\n"
                                "vllm:num_requests_running_total 99\n"
                                "other 5\n"),
            6U);
  EXPECT_EQ(requests_in_metrics("vllm:num_requests_running 4"), 4U);
}

TEST(MetricsPage, WithoutTheGaugesThereIsNoLoad) {
  for (const auto* page :
       {"", "\n\n", "up 1\n", "vllm:num_requests_running\n", "vllm:num_requests_running{ 1\n",
        "vllm:num_requests_running NaN\n", "vllm:num_requests_running -1\n"})
    EXPECT_FALSE(requests_in_metrics(page)) << page;
}

}  // namespace
}  // namespace eldr::router

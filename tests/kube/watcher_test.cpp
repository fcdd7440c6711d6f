// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/watcher.h"

#include <gtest/gtest.h>

#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;

Json named(const std::string& name, const std::string& version) {
  return {{"metadata", {{"name", name}, {"namespace", "ns"}, {"resourceVersion", version}}}};
}

/// Steps a watcher by hand.
class WatcherTest : public ::testing::Test {
 protected:
  WatcherStep& feed(WatcherInput input) {
    last = step(config, std::move(last.state), std::move(input), clock.steady(), random);
    return last;
  }
  void list_and_open(const std::string& version) {
    feed(Started{});
    feed(PageArrived{{{named("a", "1")}, version, ""}});
    feed(WatchOpened{});
  }
  WatcherStep& event(WatchEventType type, const std::string& name, const std::string& version) {
    return feed(EventArrived{{type, named(name, version)}});
  }
  WatcherStep& fail(Code code, int retry_after = 0) {
    return feed(CallFailed{Error{code, "broken", retry_after}});
  }
  std::chrono::milliseconds wait() const { return std::get<Wait>(last.command).duration; }
  WatcherPhase phase() const { return last.state.phase; }

  testing::FakeClock clock;
  WatcherConfig config;
  double random = 0.5;
  WatcherStep last;
};

TEST_F(WatcherTest, ListsInPagesThenWatchesFromTheListsVersion) {
  feed(Started{});
  EXPECT_EQ(std::get<FetchPage>(last.command).continue_token, "");
  EXPECT_EQ(std::get<FetchPage>(last.command).page_size, 500);
  feed(PageArrived{{{named("a", "1"), named("b", "2")}, "10", "next"}});
  EXPECT_EQ(std::get<FetchPage>(last.command).continue_token, "next");
  EXPECT_TRUE(last.changes.empty()) << "half a list must not reach the cache";
  feed(PageArrived{{{named("c", "3")}, "10", ""}});
  ASSERT_EQ(last.changes.size(), 1U);
  EXPECT_EQ(std::get<ReplaceAll>(last.changes[0]).objects.size(), 3U);
  const auto& open = std::get<OpenWatch>(last.command);
  EXPECT_EQ(open.resource_version, "10");
  EXPECT_EQ(open.timeout, 450s);
  EXPECT_EQ(phase(), WatcherPhase::kOpening);
}

TEST_F(WatcherTest, TimeoutIsDrawnBetweenFiveAndTenMinutes) {
  for (const auto& [drawn, expected] : {std::pair{0.0, 300s}, std::pair{0.999999, 599s}}) {
    random = drawn;
    feed(Started{});
    feed(PageArrived{{{}, "1", ""}});
    EXPECT_EQ(std::get<OpenWatch>(last.command).timeout, expected);
  }
}

TEST_F(WatcherTest, EventsChangeTheCacheAndMoveTheVersion) {
  list_and_open("10");
  event(WatchEventType::kAdded, "b", "11");
  EXPECT_EQ(std::get<Put>(last.changes.at(0)).object["metadata"]["name"], "b");
  event(WatchEventType::kModified, "b", "12");
  EXPECT_TRUE(std::holds_alternative<Put>(last.changes.at(0)));
  event(WatchEventType::kDeleted, "b", "13");
  EXPECT_TRUE(std::holds_alternative<Erase>(last.changes.at(0)));
  event(WatchEventType::kBookmark, "", "20");
  EXPECT_TRUE(last.changes.empty());
  EXPECT_EQ(last.state.resource_version, "20");
  EXPECT_TRUE(std::holds_alternative<ReadWatch>(last.command));
}

TEST_F(WatcherTest, RegularEndReopensAtOnceFromTheLastVersion) {
  list_and_open("10");
  event(WatchEventType::kBookmark, "", "30");
  clock.advance(400s);
  feed(WatchEnded{});
  EXPECT_EQ(std::get<OpenWatch>(last.command).resource_version, "30");
  EXPECT_TRUE(last.changes.empty());
}

TEST_F(WatcherTest, WatchesThatEndAtOnceAreNotReopenedInATightLoop) {
  list_and_open("10");
  feed(WatchEnded{});
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff);
  EXPECT_EQ(wait(), 400ms);
}

TEST_F(WatcherTest, ExpiredStatusRelists) {
  feed(Started{});
  feed(PageArrived{{{}, "10", ""}});
  fail(Code::kExpired);  // the answer to opening the watch
  EXPECT_EQ(phase(), WatcherPhase::kListing);
  EXPECT_EQ(std::get<FetchPage>(last.command).continue_token, "");
  EXPECT_FALSE(last.note.empty());
}

TEST_F(WatcherTest, ExpiredErrorEventRelistsAndTheRelistReplacesEverything) {
  list_and_open("10");
  feed(EventArrived{{WatchEventType::kError, {{"kind", "Status"}, {"code", 410}, {"reason", "Expired"}}}});
  EXPECT_TRUE(std::holds_alternative<FetchPage>(last.command));
  feed(PageArrived{{{named("b", "40")}, "41", ""}});
  EXPECT_EQ(std::get<ReplaceAll>(last.changes.at(0)).objects.size(), 1U);
  EXPECT_EQ(std::get<OpenWatch>(last.command).resource_version, "41");
}

TEST_F(WatcherTest, GoneReasonWithoutExpiredCodeRelistsToo) {
  list_and_open("10");
  feed(EventArrived{{WatchEventType::kError, {{"kind", "Status"}, {"code", 410}, {"reason", "Gone"}}}});
  EXPECT_EQ(phase(), WatcherPhase::kListing);
}

TEST_F(WatcherTest, ExpiredAgainAndAgainBacksOff) {
  list_and_open("10");
  fail(Code::kExpired);
  feed(PageArrived{{{}, "11", ""}});
  feed(WatchOpened{});
  fail(Code::kExpired);
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff);
  feed(WaitOver{});
  EXPECT_EQ(phase(), WatcherPhase::kListing);
}

TEST_F(WatcherTest, ExpiredContinueTokenListsFromTheStart) {
  feed(Started{});
  feed(PageArrived{{{named("a", "1")}, "10", "next"}});
  fail(Code::kExpired);
  EXPECT_EQ(std::get<FetchPage>(last.command).continue_token, "");
  feed(PageArrived{{{named("b", "1")}, "12", ""}});
  EXPECT_EQ(std::get<ReplaceAll>(last.changes.at(0)).objects.size(), 1U)
      << "the first try's page is forgotten";
}

TEST_F(WatcherTest, OtherErrorEventsReconnectWithoutAList) {
  list_and_open("10");
  event(WatchEventType::kAdded, "b", "15");
  feed(EventArrived{
      {WatchEventType::kError, {{"kind", "Status"}, {"code", 500}, {"reason", "InternalError"}}}});
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff);
  feed(WaitOver{});
  EXPECT_EQ(std::get<OpenWatch>(last.command).resource_version, "15");
}

TEST_F(WatcherTest, BackoffDoublesUpToItsLongestWithFullJitter) {
  feed(Started{});
  random = 1.0 - 1e-9;
  for (const auto expected : {800ms, 1600ms, 3200ms, 6400ms, 12'800ms, 25'600ms, 30'000ms, 30'000ms}) {
    fail(Code::kUnavailable);
    EXPECT_NEAR(static_cast<double>(wait().count()), static_cast<double>(expected.count()), 1);
    feed(WaitOver{});
    EXPECT_EQ(phase(), WatcherPhase::kListing);
  }
  random = 0;
  fail(Code::kUnavailable);
  EXPECT_EQ(wait(), 0ms);
  for (int i = 0; i < 2000; ++i) {  // no overflow
    random = 1.0 - 1e-9;
    feed(WaitOver{});
    fail(Code::kUnavailable);
    ASSERT_LE(wait(), 30'000ms);
    ASSERT_GE(wait(), 29'999ms);
  }
}

TEST_F(WatcherTest, TwoHealthyMinutesResetTheBackoff) {
  list_and_open("10");
  for (int i = 0; i < 4; ++i) {
    fail(Code::kUnavailable);
    feed(WaitOver{});
    feed(WatchOpened{});
  }
  clock.advance(119s);
  fail(Code::kUnavailable);
  EXPECT_EQ(wait(), 6400ms) << "not yet";
  feed(WaitOver{});
  feed(WatchOpened{});
  clock.advance(120s);
  fail(Code::kUnavailable);
  EXPECT_EQ(wait(), 400ms);
}

TEST_F(WatcherTest, RetryAfterIsHonoured) {
  list_and_open("10");
  fail(Code::kThrottled, 7);
  EXPECT_EQ(wait(), 7s);
}

TEST_F(WatcherTest, TruncatedLineReconnectsFromTheLastVersion) {
  list_and_open("10");
  event(WatchEventType::kModified, "a", "17");
  feed(WatchEnded{.cut_off = true});
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff);
  feed(WaitOver{});
  EXPECT_EQ(std::get<OpenWatch>(last.command).resource_version, "17");
}

TEST_F(WatcherTest, LinesThatStayBadLeadToANewList) {
  list_and_open("10");
  for (int i = 0; i < 3; ++i) {
    fail(Code::kInternal);
    feed(WaitOver{});
    ASSERT_EQ(phase(), WatcherPhase::kOpening) << i;
    feed(WatchOpened{});
  }
  fail(Code::kInternal);
  feed(WaitOver{});
  EXPECT_EQ(phase(), WatcherPhase::kListing);
}

TEST_F(WatcherTest, FailedPageIsAskedForAgain) {
  feed(Started{});
  feed(PageArrived{{{named("a", "1")}, "10", "next"}});
  fail(Code::kTimeout);
  feed(WaitOver{});
  EXPECT_EQ(std::get<FetchPage>(last.command).continue_token, "next");
  feed(PageArrived{{{named("b", "1")}, "10", ""}});
  EXPECT_EQ(std::get<ReplaceAll>(last.changes.at(0)).objects.size(), 2U);
}

TEST_F(WatcherTest, PagesTooLargeToHoldAreHalved) {
  feed(Started{});
  fail(Code::kResourceExhausted);
  EXPECT_EQ(std::get<FetchPage>(last.command).page_size, 250);
  for (int i = 0; i < 20; ++i) {
    fail(Code::kResourceExhausted);
  }
  EXPECT_EQ(last.state.page_size, 1);
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff) << "one object alone is too large: that is an error";
}

TEST_F(WatcherTest, SilenceWithoutBookmarksLastsUntilTheServerShouldHaveEndedTheWatch) {
  list_and_open("10");  // timeoutSeconds 450
  clock.advance(479s);
  feed(NothingArrived{});
  ASSERT_TRUE(std::holds_alternative<ReadWatch>(last.command));
  EXPECT_EQ(std::get<ReadWatch>(last.command).deadline - clock.steady(), 1s);
  clock.advance(1s);
  feed(NothingArrived{});
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff);
  feed(WaitOver{});
  EXPECT_EQ(std::get<OpenWatch>(last.command).resource_version, "10");
}

TEST_F(WatcherTest, SilenceAfterABookmarkIsNoticedSooner) {
  list_and_open("10");
  event(WatchEventType::kBookmark, "", "11");
  clock.advance(179s);
  feed(NothingArrived{});
  ASSERT_TRUE(std::holds_alternative<ReadWatch>(last.command));
  clock.advance(1s);
  feed(NothingArrived{});
  EXPECT_EQ(phase(), WatcherPhase::kBackingOff);
}

TEST_F(WatcherTest, ADriverThatBreaksTheOrderGetsANewList) {
  list_and_open("10");
  feed(PageArrived{{{}, "1", ""}});
  EXPECT_EQ(phase(), WatcherPhase::kListing);
  feed(EventArrived{{WatchEventType::kAdded, named("x", "2")}});
  EXPECT_EQ(phase(), WatcherPhase::kListing);
  EXPECT_TRUE(last.changes.empty());
}

}  // namespace
}  // namespace eldr::kube

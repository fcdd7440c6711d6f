// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/event_recorder.h"

#include <atomic>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "lib/kube/object.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_clock.h"

namespace eldr::kube {
namespace {

using namespace std::chrono_literals;

class EventRecorderTest : public ::testing::Test {
 protected:
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000 && !holds(); ++i) {
      std::this_thread::sleep_for(5ms);
    }
    return holds();
  }
  void record(const std::string& note) {
    recorder.record(policy, EventType::kNormal, "Started", "Calibrating", note);
  }

  testing::FakeClock clock;
  std::shared_ptr<testing::FakeApiServer> server = std::make_shared<testing::FakeApiServer>();
  Client client{server, {}, clock};
  EventRecorder recorder{
      client, {.controller = "eldr.dev/operator", .instance = "pod-1", .queue = 50}, clock};
  const ObjectReference policy{"eldr.dev/v1alpha1", "EldrPolicy", "ns", "qwen3", "uid-1", "7"};
};

TEST_F(EventRecorderTest, WritesWhatKubectlDescribeShows) {
  recorder.start();
  record("fitting 6 clusters");
  ASSERT_TRUE(eventually([&] { return server->objects(kEvents).size() == 1; }));
  const Json event = server->objects(kEvents)[0];
  EXPECT_EQ(event["regarding"]["name"], "qwen3");
  EXPECT_EQ(event["regarding"]["uid"], "uid-1");
  EXPECT_EQ(event["reason"], "Started");
  EXPECT_EQ(event["action"], "Calibrating");
  EXPECT_EQ(event["note"], "fitting 6 clusters");
  EXPECT_EQ(event["type"], "Normal");
  EXPECT_EQ(event["reportingController"], "eldr.dev/operator");
  EXPECT_EQ(event["reportingInstance"], "pod-1");
  EXPECT_EQ(object_namespace(event), "ns");
}

TEST_F(EventRecorderTest, RepetitionsBecomeASeries) {
  recorder.start();
  for (int i = 0; i < 5; ++i) {
    record("same");
  }
  record("different");
  ASSERT_TRUE(eventually([&] { return server->objects(kEvents).size() == 2; }));
  recorder.stop(5s);
  int counts = 0;
  for (const Json& event : server->objects(kEvents)) {
    counts += static_cast<int>(int_at(event, {"series", "count"}).value_or(1));
  }
  EXPECT_EQ(counts, 6);
  EXPECT_EQ(server->count("PATCH"), 1U) << "one write for the four repetitions";
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, AfterTheWindowANewEventBegins) {
  recorder.start();
  record("same");
  ASSERT_TRUE(eventually([&] { return server->objects(kEvents).size() == 1; }));
  clock.advance(361s);
  record("same");
  EXPECT_TRUE(eventually([&] { return server->objects(kEvents).size() == 2; }));
}

TEST_F(EventRecorderTest, NeverBlocksAndCountsWhatItDrops) {
  for (int i = 0; i < 80; ++i) {  // nobody takes them out yet
    record(std::to_string(i));
  }
  EXPECT_EQ(recorder.dropped(), 30U);
  recorder.start();
  recorder.stop(10s);
  EXPECT_EQ(server->objects(kEvents).size(), 50U);
  EXPECT_EQ(recorder.written(), 50U);
}

TEST_F(EventRecorderTest, RefusedEventsAreDroppedNotRetried) {
  server->intercept([](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    return Result<HttpResponse>(testing::status_response(403, "Forbidden", "namespace is terminating"));
  });
  recorder.start();
  record("x");
  EXPECT_TRUE(eventually([&] { return recorder.dropped() == 1; }));
  EXPECT_EQ(server->count("POST"), 1U);
}

TEST_F(EventRecorderTest, ServerThatIsAwayForAMomentLosesNothing) {
  std::atomic<int> calls{0};
  server->intercept([&](const HttpRequest&) -> std::optional<Result<HttpResponse>> {
    if (calls++ == 0) {
      return Result<HttpResponse>(failure(Code::kUnavailable, "refused"));
    }
    return std::nullopt;
  });
  recorder.start();
  record("x");
  EXPECT_TRUE(eventually([&] { return server->objects(kEvents).size() == 1; }));
  EXPECT_EQ(recorder.dropped(), 0U);
}

TEST_F(EventRecorderTest, LongTextsAreCutBetweenCharacters) {
  recorder.start();
  std::string note;
  while (note.size() < 2000) {
    note += "ü";
  }
  record("x" + note);
  ASSERT_TRUE(eventually([&] { return server->objects(kEvents).size() == 1; }));
  EXPECT_EQ(string_at(server->objects(kEvents)[0], {"note"}).size(), 1023U);
}

}  // namespace
}  // namespace eldr::kube

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/publish/publisher.h"

#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "calibrator/publish/annotation_progress.h"
#include "lib/base/digest.h"
#include "tests/kube/fake_api_server.h"

namespace eldr::calibrator {
namespace {

using kube::testing::FakeApiServer;
using kube::testing::status_response;
using nlohmann::json;

class NoWait final : public Sleeper {
 public:
  bool sleep(std::chrono::milliseconds, const std::stop_token& stop) override {
    ++count;
    return !stop.stop_requested();
  }
  int count = 0;
};

class PublisherTest : public ::testing::Test {
 protected:
  void put(json fields = json::object()) {
    json config_map = {
        {"metadata", {{"name", "qwen3-c-1"}, {"annotations", {{"eldr.dev/fit-hash", "abc"}}}}}};
    config_map.update(fields);
    server_->put(kube::kConfigMaps, "serving", config_map);
  }
  json stored() const { return server_->object(kube::kConfigMaps, key_); }

  RealClock clock_;
  std::shared_ptr<FakeApiServer> server_ = std::make_shared<FakeApiServer>();
  kube::Client client_{server_, {}, clock_};
  kube::ObjectKey key_{"serving", "qwen3-c-1"};
  NoWait sleeper_;
  Publisher publisher_{client_, key_, sleeper_};
};

TEST_F(PublisherTest, OnePatchSetsResultAndSummaryAndKeepsTheRest) {
  put();
  ASSERT_TRUE(publisher_.check({}));
  const std::string file = "the centroids";
  ASSERT_TRUE(publisher_.publish(as_bytes(file), {{"rho", 0.5}}, {}));
  EXPECT_EQ(stored()["binaryData"]["centroids.safetensors"], base64_encode(as_bytes(file)));
  EXPECT_EQ(json::parse(stored()["metadata"]["annotations"]["eldr.dev/summary"].get<std::string>()),
            json({{"rho", 0.5}}));
  EXPECT_EQ(stored()["metadata"]["annotations"]["eldr.dev/fit-hash"], "abc");
  EXPECT_EQ(server_->count("PATCH "), 1U);
}

TEST_F(PublisherTest, ChecksBeforeAnyWork) {
  const auto missing = publisher_.check({});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_NE(missing.error().message.find("serving/qwen3-c-1"), std::string::npos);
  put({{"immutable", true}});
  EXPECT_NE(publisher_.check({}).error().message.find("immutable"), std::string::npos);
}

TEST_F(PublisherTest, ARoleThatIsNotInForceYetIsWaitedFor) {
  put();
  int refused = 0;
  server_->intercept([&](const kube::HttpRequest&) -> std::optional<Result<kube::HttpResponse>> {
    if (refused++ < 2) {
      return status_response(403, "Forbidden", "not yet");
    }
    return std::nullopt;
  });
  EXPECT_TRUE(publisher_.check({}));
  EXPECT_EQ(sleeper_.count, 2);
}

TEST_F(PublisherTest, PublishingIsTriedAgainWhileTheServerIsAway) {
  put();
  int calls = 0;
  server_->intercept([&](const kube::HttpRequest&) -> std::optional<Result<kube::HttpResponse>> {
    if (calls++ < 3) {
      return failure(Code::kUnavailable, "connection refused");
    }
    return std::nullopt;
  });
  EXPECT_TRUE(publisher_.publish(as_bytes("x"), json::object(), {}));
  EXPECT_EQ(calls, 4);
}

TEST_F(PublisherTest, ARefusalIsNotTriedAgain) {
  put();
  server_->intercept([&](const kube::HttpRequest&) -> std::optional<Result<kube::HttpResponse>> {
    return status_response(422, "Invalid", "field is immutable");
  });
  EXPECT_FALSE(publisher_.publish(as_bytes("x"), json::object(), {}));
  EXPECT_EQ(sleeper_.count, 0);
}

TEST_F(PublisherTest, ProgressIsAnAnnotation) {
  put();
  {
    AnnotationProgress progress(publisher_);
    progress.show({.stage = Stage::kCollecting, .done = 420, .total = 1000});
    for (int i = 0; i < 200 && !stored()["metadata"]["annotations"].contains("eldr.dev/progress"); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    for (std::size_t done = 421; done < 500; ++done) {  // far more often than once a second
      progress.show({.stage = Stage::kCollecting, .done = done, .total = 1000});
    }
  }
  EXPECT_EQ(stored()["metadata"]["annotations"]["eldr.dev/progress"],
            R"({"done":420,"stage":"Collecting","total":1000})");
  EXPECT_EQ(server_->count("PATCH "), 1U);
}

}  // namespace
}  // namespace eldr::calibrator

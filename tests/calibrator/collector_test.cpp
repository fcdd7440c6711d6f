// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/collector.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "calibrator/collect/adaptive_limit.h"
#include "calibrator/collect/curl_transport.h"
#include "tests/calibrator/engine_double.h"

namespace eldr::calibrator {
namespace {

using testing::EngineDouble;

/// Does not wait; time goes on by what was asked for.
class FakeTime final : public Sleeper, public Clock {
 public:
  bool sleep(std::chrono::milliseconds time, const std::stop_token& stop) override {
    const std::lock_guard lock(mutex_);
    now_ += time;
    slept_.push_back(time);
    return !stop.stop_requested();
  }
  Steady steady() const override {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  Wall wall() const override { return {}; }
  std::vector<std::chrono::milliseconds> slept() const {
    const std::lock_guard lock(mutex_);
    return slept_;
  }

 private:
  mutable std::mutex mutex_;
  Steady now_{};
  std::vector<std::chrono::milliseconds> slept_;
};

std::vector<Prompt> prompts(std::size_t count) {
  std::vector<Prompt> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = std::string(1, static_cast<char>('a' + i % 5)) + " prompt " + std::to_string(i);
    all.push_back(parse_prompt(nlohmann::json({{"prompt", text}}).dump(), i + 1).value());
  }
  return all;
}

/// A collector with an engine of its own.
struct Fixture {
  explicit Fixture(EngineDouble::Intercept intercept = {}, CollectorOptions options = {.concurrency = 4})
      : engine("test-moe", std::move(intercept)),
        transport(make_curl_transport()),
        client(*transport, {.base_url = engine.url() + "/",
                            .model = "test-moe",
                            .decode_tokens = 5,
                            .request_timeout = std::chrono::milliseconds(2000)}),
        progress(time),
        collector(client, options, progress, time, time) {}

  auto collect(std::size_t count, ResumeFile* resume = nullptr) {
    return collector.collect(prompts(count), resume, stop.get_token());
  }

  EngineDouble engine;
  std::unique_ptr<HttpTransport> transport;
  EngineClient client;
  FakeTime time;
  Progress progress;
  std::stop_source stop;
  Collector collector;
};

EngineDouble::Intercept answers(int status, const std::string& body, std::size_t from = 1,
                                std::size_t to = 1000000) {
  return [=](std::size_t number, const http::Request&, http::ResponseWriter& answer) {
    if (number < from || number > to) {
      return false;
    }
    answer.respond(status, "application/json", body);
    return true;
  };
}

TEST(Collector, CountsPromptAndDecodeRowsApart) {
  Fixture fixture;
  const auto counts = fixture.collect(12);
  ASSERT_TRUE(counts) << counts.error().error.message;
  for (std::size_t i = 0; i < 12; ++i) {
    ASSERT_TRUE((*counts)[i]);
    const RequestCounts& request = *(*counts)[i];
    EXPECT_EQ(request.prompt_tokens, ("a prompt " + std::to_string(i)).size());
    EXPECT_EQ(request.decode_tokens, 4U);  // five generated, the last was never fed to the model
    for (std::size_t layer = 0; layer < EngineDouble::kLayers; ++layer) {
      std::uint32_t prefill = 0;
      std::uint32_t decode = 0;
      for (std::size_t e = 0; e < request.width; ++e) {
        prefill += request.prefill[layer * request.width + e];
        decode += request.decode[layer * request.width + e];
      }
      EXPECT_EQ(prefill, request.prompt_tokens * EngineDouble::kTopK);
      EXPECT_EQ(decode, request.decode_tokens * EngineDouble::kTopK);
    }
  }
  EXPECT_LE(fixture.engine.most_in_flight(), 4U);
  EXPECT_EQ(fixture.engine.completions(), 12U);
}

TEST(Collector, SaysWhatTheEngineNeedsToKnow) {
  Fixture fixture;
  ASSERT_TRUE(fixture.collect(1));
  const auto body = nlohmann::json::parse(fixture.engine.bodies().at(0));
  EXPECT_EQ(body["model"], "test-moe");
  EXPECT_EQ(body["max_tokens"], 5);
  EXPECT_EQ(body["stream"], false);
  EXPECT_EQ(body["temperature"], 0);
  EXPECT_EQ(body["return_routed_experts"], true);
}

TEST(Collector, TriesAgainWhatMayPass) {
  for (const int status : {429, 500, 503}) {
    Fixture fixture(answers(status, R"({"error":{"message":"busy"}})", 1, 3), {.concurrency = 1});
    const auto counts = fixture.collect(2);
    ASSERT_TRUE(counts) << status << counts.error().error.message;
    EXPECT_EQ(fixture.engine.completions(), 5U);
    const auto slept = fixture.time.slept();
    ASSERT_EQ(slept.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {  // doubling, half of it drawn
      EXPECT_GE(slept[i].count(), 250 << i);
      EXPECT_LE(slept[i].count(), 500 << i);
    }
  }
}

TEST(Collector, WaitsAsLongAsTheEngineAsks) {
  Fixture fixture(
      [](std::size_t number, const http::Request&, http::ResponseWriter& answer) {
        if (number <= 2) {
          answer.respond(429, "application/json", "{}", {{"Retry-After", number == 1 ? "7" : "100000"}});
        }
        return number <= 2;
      },
      {.concurrency = 1});
  ASSERT_TRUE(fixture.collect(1));
  EXPECT_EQ(fixture.time.slept(),
            (std::vector<std::chrono::milliseconds>{std::chrono::seconds(7), std::chrono::seconds(3600)}))
      << "an hour at most";
}

/// An engine that takes three requests at a time and refuses the rest.
TEST(Collector, FindsOutHowMuchAnEngineTakes) {
  std::atomic<int> running{0};
  std::atomic<int> refused{0};
  std::atomic<int> refused_late{0};
  std::atomic<int> answered{0};
  Fixture fixture(
      [&](std::size_t, const http::Request&, http::ResponseWriter& answer) {
        const bool full = ++running > 3;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (full) {
          ++refused;
          refused_late += answered > 100 ? 1 : 0;
          answer.respond(429, "application/json", "{}");
        } else {
          ++answered;
        }
        --running;
        return full;
      },
      {.concurrency = 16, .retries = 100});
  const auto counts = fixture.collect(200);
  ASSERT_TRUE(counts) << counts.error().error.message;
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused_late, 100) << "sixteen at a time would be refused thirteen of sixteen times";
}

TEST(Collector, GivesUpOnAnEngineThatKeepsFailing) {
  Fixture fixture(answers(500, "{}"), {.concurrency = 2, .retries = 3});
  const auto counts = fixture.collect(10);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().exit, kExitUnavailable);
  EXPECT_LE(fixture.engine.completions(), 8U);
}

TEST(Collector, GivesUpOnAnEngineThatDies) {
  std::unique_ptr<Fixture> fixture;
  fixture = std::make_unique<Fixture>(
      [&](std::size_t number, const http::Request&, http::ResponseWriter& answer) {
        if (number >= 3) {
          answer.abort();
        }
        return number >= 3;
      },
      CollectorOptions{.concurrency = 2, .retries = 2});
  const auto counts = fixture->collect(10);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().exit, kExitUnavailable);
}

TEST(Collector, AHangEndsAtItsDeadline) {
  Fixture fixture(
      [](std::size_t, const http::Request&, http::ResponseWriter& answer) {
        while (!answer.client_gone()) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        return true;
      },
      {.concurrency = 1, .retries = 0});
  const auto counts = fixture.collect(1);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().error.code, Code::kTimeout);
  EXPECT_EQ(counts.error().exit, kExitUnavailable);
}

TEST(Collector, LeavesOutAFewRefusedPromptsAndNamesTooMany) {
  Fixture few(answers(400, R"({"error":{"message":"too long"}})", 7, 7), {.concurrency = 1});
  const auto counts = few.collect(40);
  ASSERT_TRUE(counts);
  EXPECT_EQ(std::count_if(counts->begin(), counts->end(), [](const auto& c) { return !c; }), 1);

  Fixture many(answers(400, R"({"error":{"message":"This model's maximum is 10"}})"), {.concurrency = 1});
  const auto refused = many.collect(40);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().exit, kExitBadData);
  EXPECT_NE(refused.error().error.message.find("This model's maximum is 10"), std::string::npos)
      << refused.error().error.message;
}

TEST(Collector, AnEngineThatCannotHelpEndsItAtOnce) {
  for (const auto& [status, body, part] :
       {std::tuple<int, std::string, std::string>{
            200, R"({"choices":[{"text":"x"}],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
            "--enable-return-routed-experts"},
        {404, R"({"error":{"message":"no such model"}})", "no such model"},
        {401, R"({"error":{"message":"no key"}})", "no key"},
        {200, R"({"choices":[{"routed_experts":"AAAA"}],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
         "routed_experts"}}) {
    Fixture fixture(answers(status, body), {.concurrency = 1});
    const auto counts = fixture.collect(5);
    ASSERT_FALSE(counts) << body;
    EXPECT_EQ(counts.error().exit, kExitConfig) << body;
    EXPECT_NE(counts.error().error.message.find(part), std::string::npos) << counts.error().error.message;
    EXPECT_EQ(fixture.engine.completions(), 1U);
  }
}

TEST(Collector, StopsSoonWhenAsked) {
  Fixture fixture([](std::size_t, const http::Request&, http::ResponseWriter& answer) {
    while (!answer.client_gone()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  });
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    fixture.stop.request_stop();
  });
  const auto counts = fixture.collect(8);
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().error.code, Code::kCancelled);
  EXPECT_EQ(counts.error().exit, kExitTryAgain);
}

TEST(Collector, WaitsForHealthUntilItsDeadline) {
  Fixture fixture({}, {.engine_wait = std::chrono::seconds(30)});
  fixture.engine.set_healthy(false);
  const auto waited = fixture.collector.wait_for_engine(fixture.stop.get_token());
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().exit, kExitUnavailable);
  EXPECT_NE(waited.error().error.message.find("503"), std::string::npos);
  EXPECT_GE(fixture.time.slept().size(), 30U);
  fixture.engine.set_healthy(true);
  EXPECT_TRUE(fixture.collector.wait_for_engine(fixture.stop.get_token()));
}

TEST(Collector, AnotherModelIsNamed) {
  Fixture fixture;
  EngineClient other(*fixture.transport, {.base_url = fixture.engine.url(), .model = "else"});
  const auto served = other.check_model(fixture.stop.get_token());
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().exit, kExitConfig);
  EXPECT_NE(served.error().error.message.find("it serves \"test-moe\""), std::string::npos);
  EXPECT_TRUE(fixture.client.check_model(fixture.stop.get_token()));
}

TEST(Collector, RepeatsNoFinishedRequest) {
  const std::string path = ::testing::TempDir() + "/eldr-resume-" + std::to_string(getpid());
  std::filesystem::remove(path);
  {
    Fixture dying(answers(404, "{}", 6), {.concurrency = 1});
    auto resume = ResumeFile::open(path, "inputs", 10);
    ASSERT_TRUE(resume);
    ASSERT_FALSE(dying.collect(10, resume->get()));
  }
  {  // a torn last line, as after a crash in the middle of a write
    std::ofstream(path, std::ios::app) << R"({"i":9,"p":4,"pre)";
  }
  Fixture fixture;
  auto resume = ResumeFile::open(path, "inputs", 10);
  ASSERT_TRUE(resume);
  const auto counts = fixture.collect(10, resume->get());
  ASSERT_TRUE(counts);
  EXPECT_EQ(fixture.engine.completions(), 5U);
  Fixture whole;
  const auto fresh = whole.collect(10);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ((*counts)[i]->prefill, (*fresh)[i]->prefill);
    EXPECT_EQ((*counts)[i]->decode, (*fresh)[i]->decode);
  }
  const auto everything = ResumeFile::open(path, "inputs", 10);
  for (const auto& finished : (*everything)->take_finished()) {
    EXPECT_TRUE(finished);
  }
  const auto other_inputs = ResumeFile::open(path, "other inputs", 10);
  for (const auto& finished : (*other_inputs)->take_finished()) {
    EXPECT_FALSE(finished);
  }
  (*other_inputs)->remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(AdaptiveLimit, HalvesOnOverloadAndGrowsBack) {
  AdaptiveLimit limit(8);
  std::stop_source stop;
  ASSERT_TRUE(limit.acquire(stop.get_token()));
  limit.release(true);
  EXPECT_EQ(limit.limit(), 4U);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(limit.acquire(stop.get_token()));
    limit.release(true);
  }
  EXPECT_EQ(limit.limit(), 1U);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(limit.acquire(stop.get_token()));
    limit.release(false);
  }
  EXPECT_EQ(limit.limit(), 8U);
}

TEST(EngineMessages, NoQuotedTextReachesALog) {
  EXPECT_EQ(loggable("This model's maximum context length is 4096"),
            "This model's maximum context length is 4096");
  EXPECT_EQ(loggable("bad input 'secret prompt' at 3"), "bad input '…' at 3");
  EXPECT_EQ(loggable("bad input \"secret"), "bad input \"");
  EXPECT_EQ(loggable("first\nsecond"), "first");
  EXPECT_LE(loggable(std::string(5000, 'x')).size(), 200U);
}

}  // namespace
}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
// Workers that fail: what is relayed, what is tried again, what breaks.
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/router/support/test_router.h"

namespace eldr::router::testing {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr const char* kBody = R"({"prompt":"p"})";
constexpr const char* kStream = R"({"prompt":"p","stream":true})";

json error_of(const std::string& body) { return json::parse(body)["error"]; }

TEST(PrefillFailure, ClientErrorsAreRelayedAsTheyAre) {
  FakeWorker prefill(status_answer(400, R"({"error":{"message":"too long","code":400}})"));
  FakeWorker decode(decoded());
  TestRouter router({&prefill}, {&decode});
  const auto answer = router.post("/v1/completions", kBody);
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body, R"({"error":{"message":"too long","code":400}})");
  EXPECT_EQ(prefill.count(), 1U);
  EXPECT_EQ(decode.count(), 0U);
}

TEST(PrefillFailure, ServerErrorsAreTriedOnAnotherWorker) {
  FakeWorker bad(status_answer(500, R"({"error":"engine"})"));
  FakeWorker good(prefilled());
  FakeWorker decode(decoded());
  TestRouter router({&bad, &good}, {&decode},
                    "routing: {prefillPolicy: RoundRobin}\nhealth: {failures: 100}\n");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(router.post("/v1/completions", kBody).status, 200);
  EXPECT_GT(bad.count(), 0U);
  EXPECT_EQ(good.count(), 6U);
  EXPECT_EQ(router.metric("eldr_router_retries_total{leg=\"prefill\"}"), static_cast<double>(bad.count()));
}

TEST(PrefillFailure, WhenAllFailTheLastAnswerIsRelayed) {
  FakeWorker bad(status_answer(503, R"({"error":"engine dead"})"));
  FakeWorker decode(decoded());
  TestRouter router({&bad}, {&decode});
  const auto answer = router.post("/v1/completions", kBody);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, R"({"error":"engine dead"})");
}

TEST(PrefillFailure, AnUnreachableWorkerIsABadGateway) {
  FakeWorker gone(prefilled());
  FakeWorker decode(decoded());
  TestRouter router({&gone}, {&decode});
  gone.stop();
  const auto answer = router.post("/v1/completions", kBody);
  EXPECT_EQ(answer.status, 502);
  EXPECT_EQ(error_of(answer.body)["type"], "upstream_error");
  EXPECT_NE(error_of(answer.body)["message"].get<std::string>().find("prefill worker"), std::string::npos);
}

TEST(PrefillFailure, AnAnswerThatIsNoJsonIsABadGateway) {
  FakeWorker bad(status_answer(200, "<html>"));
  FakeWorker decode(decoded());
  TestRouter router({&bad}, {&decode});
  EXPECT_EQ(router.post("/v1/completions", kBody).status, 502);
  EXPECT_EQ(decode.count(), 0U);
}

TEST(PrefillFailure, ASlowWorkerMeetsItsDeadline) {
  const SharedCount went;
  FakeWorker slow(hangs(went));
  FakeWorker decode(decoded());
  TestRouter router({&slow}, {&decode}, "timeouts: {prefillSeconds: 0.3}\n");
  const auto answer = router.post("/v1/completions", kBody);
  EXPECT_EQ(answer.status, 504);
  EXPECT_EQ(error_of(answer.body)["type"], "timeout_error");
  EXPECT_TRUE(soon([&] { return went.value() == 1; }));
  EXPECT_EQ(router.metric("eldr_router_deadlines_total{stage=\"prefill\"}"), 1);
}

TEST(DecodeFailure, ServerErrorsAreTriedOnAnotherWorkerBeforeAnyByte) {
  FakeWorker prefill(prefilled());
  FakeWorker bad(status_answer(500, "{}"));
  FakeWorker good(decoded());
  TestRouter router({&prefill}, {&bad, &good}, "routing: {policy: RoundRobin}\nhealth: {failures: 100}\n");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(router.post("/v1/completions", kStream).status, 200);
  EXPECT_GT(bad.count(), 0U);
  EXPECT_EQ(good.count(), 6U);
  EXPECT_EQ(prefill.count(), 6U);
  EXPECT_EQ(bad.requests()[0].body, good.requests()[0].body);
}

TEST(DecodeFailure, ClientErrorsAreRelayedAsTheyAre) {
  FakeWorker prefill(prefilled());
  FakeWorker bad(status_answer(422, R"({"detail":"no"})"));
  TestRouter router({&prefill}, {&bad});
  const auto answer = router.post("/v1/completions", kBody);
  EXPECT_EQ(answer.status, 422);
  EXPECT_EQ(answer.body, R"({"detail":"no"})");
  EXPECT_EQ(bad.count(), 1U);
}

TEST(DecodeFailure, AStreamThatBreaksIsBrokenForTheClientToo) {
  FakeWorker prefill(prefilled());
  FakeWorker breaks([](const http::Request&, http::ResponseWriter& writer) {
    static_cast<void>(writer.start(200, "text/event-stream"));
    static_cast<void>(writer.write("data: {\"token\":0}\n\n"));
    std::this_thread::sleep_for(milliseconds(100));
    writer.abort();
  });
  TestRouter router({&prefill}, {&breaks});
  RawClient client(router.port());
  client.post("/v1/completions", kStream);
  const auto answer = client.read_to_end();
  EXPECT_TRUE(client.ended());
  EXPECT_NE(answer.find("\"token\":0"), std::string::npos);
  EXPECT_EQ(answer.find("0\r\n\r\n"), std::string::npos);
  EXPECT_TRUE(router.metric_becomes("eldr_router_broken_streams_total{by=\"decode_worker\"}", 1));
  EXPECT_EQ(breaks.count(), 1U);  // not tried again: the client has seen bytes
}

TEST(DecodeFailure, ASilentStreamMeetsTheIdleDeadline) {
  FakeWorker prefill(prefilled());
  const SharedCount went;
  FakeWorker stalls([&](const http::Request& request, http::ResponseWriter& writer) {
    static_cast<void>(writer.start(200, "text/event-stream"));
    static_cast<void>(writer.write("data: 0\n\n"));
    hangs(went)(request, writer);
  });
  TestRouter router({&prefill}, {&stalls}, "timeouts: {idleSeconds: 0.3}\n");
  RawClient client(router.port());
  client.post("/v1/completions", kStream);
  static_cast<void>(client.read_to_end());
  EXPECT_TRUE(client.ended());
  EXPECT_TRUE(soon([&] { return went.value() == 1; }));
  EXPECT_EQ(router.metric("eldr_router_deadlines_total{stage=\"idle\"}"), 1);
}

TEST(DecodeFailure, ASlowFirstByteIsAGatewayTimeout) {
  FakeWorker prefill(prefilled());
  FakeWorker slow(hangs());
  TestRouter router({&prefill}, {&slow}, "timeouts: {firstByteSeconds: 0.3}\n");
  EXPECT_EQ(router.post("/v1/completions", kBody).status, 504);
  EXPECT_EQ(router.metric("eldr_router_deadlines_total{stage=\"first_byte\"}"), 1);
}

TEST(DecodeFailure, TheTotalDeadlineEndsAnEndlessStream) {
  FakeWorker prefill(prefilled());
  FakeWorker endless(streams_on());
  TestRouter router({&prefill}, {&endless}, "timeouts: {totalSeconds: 0.5}\n");
  RawClient client(router.port());
  client.post("/v1/completions", kStream);
  static_cast<void>(client.read_to_end());
  EXPECT_TRUE(client.ended());
  EXPECT_TRUE(router.metric_becomes("eldr_router_deadlines_total{stage=\"total\"}", 1));
}

TEST(DecodeFailure, TheTotalDeadlineCountsBothLegs) {
  FakeWorker prefill([](const http::Request& request, http::ResponseWriter& writer) {
    std::this_thread::sleep_for(milliseconds(250));
    prefilled()(request, writer);
  });
  const SharedCount went;
  FakeWorker slow(hangs(went));
  TestRouter router({&prefill}, {&slow}, "timeouts: {totalSeconds: 0.5}\n");
  const auto start = std::chrono::steady_clock::now();
  const auto answer = router.post("/v1/completions", kBody);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(answer.status, 504);  // no byte was sent before
  EXPECT_EQ(error_of(answer.body)["type"], "timeout_error");
  EXPECT_GE(took, milliseconds(450));
  EXPECT_LT(took, milliseconds(5000));
  EXPECT_TRUE(soon([&] { return went.value() == 1; }));
  EXPECT_EQ(router.metric("eldr_router_deadlines_total{stage=\"total\"}"), 1);
  EXPECT_EQ(router.metric("eldr_router_deadlines_total{stage=\"first_byte\"}"), 0);
}

TEST(PrefillFailure, TheTotalDeadlineHoldsBeforeTheDecodeLeg) {
  FakeWorker slow(hangs());
  FakeWorker decode(decoded());
  TestRouter router({&slow}, {&decode}, "timeouts: {totalSeconds: 0.3}\n");
  EXPECT_EQ(router.post("/v1/completions", kBody).status, 504);
  EXPECT_EQ(router.metric("eldr_router_deadlines_total{stage=\"total\"}"), 1);
  EXPECT_EQ(decode.count(), 0U);
}

TEST(PrefillFailure, AnAnswerOverTheLimitIsABadGateway) {
  const std::string large =
      R"({"kv_transfer_params":{"remote_engine_id":")" + std::string(2000, 'x') + "\"}}";
  FakeWorker decode(decoded());
  {
    FakeWorker announced(status_answer(200, large));
    TestRouter router({&announced}, {&decode}, "limits: {prefillAnswerBytes: 1024}\n");
    EXPECT_EQ(router.post("/v1/completions", kBody).status, 502);
    EXPECT_EQ(announced.count(), 1U);  // another worker would answer as much
  }
  {
    FakeWorker chunked([&](const http::Request&, http::ResponseWriter& writer) {
      static_cast<void>(writer.start(200, "application/json"));
      static_cast<void>(writer.write(large));
      static_cast<void>(writer.finish());
    });
    TestRouter router({&chunked}, {&decode}, "limits: {prefillAnswerBytes: 1024}\n");
    EXPECT_EQ(router.post("/v1/completions", kBody).status, 502);
  }
  EXPECT_EQ(decode.count(), 0U);
  FakeWorker fits(status_answer(200, large));
  TestRouter router({&fits}, {&decode}, "limits: {prefillAnswerBytes: 4096}\n");
  EXPECT_EQ(router.post("/v1/completions", kBody).status, 200);
}

TEST(SlowClient, MeetsTheWriteDeadline) {
  FakeWorker prefill(prefilled());
  const SharedCount went;
  FakeWorker floods([&](const http::Request&, http::ResponseWriter& writer) {
    const std::string piece = "data: " + std::string(1U << 16U, 'x') + "\n\n";
    static_cast<void>(writer.start(200, "text/event-stream"));
    for (int i = 0; i < 20'000; ++i) {  // more than sockets buffer
      if (!writer.write(piece)) {
        went.add();
        return;
      }
    }
  });
  TestRouter router({&prefill}, {&floods}, "timeouts: {writeSeconds: 0.3}\n");
  RawClient client(router.port());
  client.post("/v1/completions", kStream);  // and reads nothing
  EXPECT_TRUE(router.metric_becomes("eldr_router_deadlines_total{stage=\"write\"}", 1));
  EXPECT_TRUE(soon([&] { return went.value() == 1; })) << "the decode worker is told";
  EXPECT_TRUE(router.metric_becomes("eldr_router_in_flight_requests", 0));
}

TEST(Ejection, AFailingWorkerIsLeftOutAndComesBack) {
  FakeWorker prefill(prefilled());
  FakeWorker flaky(status_answer(500, "{}"));
  FakeWorker good(decoded());
  TestRouter router({&prefill}, {&flaky, &good},
                    "routing: {policy: RoundRobin}\nhealth: {failures: 2, ejectSeconds: 0.4}\n");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(router.post("/v1/completions", kBody).status, 200);
  EXPECT_EQ(flaky.count(), 2U);
  EXPECT_EQ(router.metric("eldr_router_ejections_total{role=\"decode\"}"), 1);
  const std::string ejected = "eldr_router_worker_ejected{role=\"decode\",worker=\"" + flaky.id() + "\"}";
  EXPECT_EQ(router.metric(ejected), 1);
  flaky.answer_with(decoded());
  std::this_thread::sleep_for(milliseconds(450));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(router.post("/v1/completions", kBody).status, 200);
  EXPECT_GT(flaky.count(), 3U);
  EXPECT_EQ(router.metric(ejected), 0);
}

TEST(Ejection, WhenAllAreEjectedRequestsAreTriedAnyway) {
  FakeWorker prefill(prefilled());
  FakeWorker only(status_answer(500, "{}"));
  TestRouter router({&prefill}, {&only}, "health: {failures: 1, ejectSeconds: 60, maxEjectSeconds: 60}\n");
  EXPECT_EQ(router.post("/v1/completions", kBody).status, 500);
  only.answer_with(decoded());
  EXPECT_EQ(router.post("/v1/completions", kBody).status, 200);
  EXPECT_EQ(router.metric("eldr_router_fail_open_total{role=\"decode\"}"), 1);
}

TEST(NoWorkers, SaysWhichAreMissing) {
  FakeWorker prefill(prefilled());
  FakeWorker decode(decoded());
  {
    TestRouter router({&prefill}, {});
    const auto answer = router.post("/v1/completions", kBody);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.header("Retry-After"), "1");
    EXPECT_EQ(error_of(answer.body)["message"], "no decode worker is ready");
    EXPECT_EQ(prefill.count(), 0U);  // nothing is prefilled that nobody could decode
  }
  {
    TestRouter router({}, {&decode});
    const auto answer = router.post("/v1/completions", kBody);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(error_of(answer.body)["message"], "no prefill worker is ready");
  }
  TestRouter router({}, {&decode}, "routing: {withoutPrefill: DecodeOnly}\n");
  const auto answer = router.post("/v1/completions", kBody, {{"X-Eldr-Debug", "1"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("X-Eldr-Reason"), "no_prefill");
}

TEST(StaleConnection, IsReplacedByAFreshOne) {
  FakeWorker prefill(prefilled(), milliseconds(150));  // closes connections early
  FakeWorker decode(decoded(), milliseconds(150));
  TestRouter router({&prefill}, {&decode}, "threads: 1\nhealth: {failures: 1}\n");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(router.post("/v1/completions", kBody).status, 200);
    std::this_thread::sleep_for(milliseconds(300));
  }
  EXPECT_EQ(router.metric("eldr_router_ejections_total{role=\"prefill\"}"), 0);
}

}  // namespace
}  // namespace eldr::router::testing

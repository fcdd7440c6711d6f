// SPDX-License-Identifier: Apache-2.0
// Clients that leave, send nonsense, send too much or too slowly; and the drain.
#include <future>
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

TEST(ClientGone, DuringPrefillTheWorkerHearsOfItWithinASecond) {
  const SharedCount went;
  FakeWorker prefill(hangs(went));
  FakeWorker decode(decoded());
  TestRouter router({&prefill}, {&decode});
  RawClient client(router.port());
  client.post("/v1/completions", kBody);
  ASSERT_TRUE(soon([&] { return prefill.count() == 1; }));
  client.leave();
  EXPECT_TRUE(soon([&] { return went.value() == 1; }, milliseconds(1000)));
  EXPECT_TRUE(router.metric_becomes("eldr_router_client_gone_total{stage=\"prefill\"}", 1));
  EXPECT_EQ(decode.count(), 0U);
  EXPECT_EQ(router.metric("eldr_router_in_flight_requests"), 0);
}

TEST(ClientGone, WhilePrefillAnswersNoDecodeBegins) {
  std::atomic<bool> answer{false};
  FakeWorker prefill([&](const http::Request& request, http::ResponseWriter& writer) {
    while (!answer) std::this_thread::sleep_for(milliseconds(5));
    prefilled()(request, writer);
  });
  FakeWorker decode(decoded());
  TestRouter router({&prefill}, {&decode});
  RawClient client(router.port());
  client.post("/v1/completions", kBody);
  ASSERT_TRUE(soon([&] { return prefill.count() == 1; }));
  client.leave();
  answer = true;
  EXPECT_TRUE(router.metric_becomes("eldr_router_in_flight_requests", 0));
  EXPECT_EQ(decode.count(), 0U);
}

TEST(ClientGone, DuringTheStreamTheWorkerHearsOfItWithinASecond) {
  FakeWorker prefill(prefilled());
  const SharedCount went;
  FakeWorker decode(streams_on(went));
  TestRouter router({&prefill}, {&decode});
  RawClient client(router.port());
  client.post("/v1/completions", kStream);
  EXPECT_NE(client.read_until("data: {}").find("200 OK"), std::string::npos);
  client.leave();
  EXPECT_TRUE(soon([&] { return went.value() == 1; }, milliseconds(1000)));
  EXPECT_TRUE(router.metric_becomes("eldr_router_broken_streams_total{by=\"client\"}", 1));
  EXPECT_TRUE(router.metric_becomes(
      "eldr_router_worker_in_flight{role=\"decode\",worker=\"" + decode.id() + "\"}", 0));
  EXPECT_EQ(
      router.metric("eldr_router_worker_failures_total{role=\"decode\",worker=\"" + decode.id() + "\"}"), 0);
}

TEST(ClientGone, WaitingForTheFirstByteOfTheStream) {
  FakeWorker prefill(prefilled());
  const SharedCount went;
  FakeWorker decode(hangs(went));
  TestRouter router({&prefill}, {&decode});
  RawClient client(router.port());
  client.post("/v1/completions", kStream);
  ASSERT_TRUE(soon([&] { return decode.count() == 1; }));
  client.leave();
  EXPECT_TRUE(soon([&] { return went.value() == 1; }, milliseconds(1000)));
}

class BadRequestTest : public ::testing::Test {
 protected:
  FakeWorker prefill_{prefilled()};
  FakeWorker decode_{decoded()};
};

TEST_F(BadRequestTest, NonsenseIsRefusedInOpenAisForm) {
  TestRouter router({&prefill_}, {&decode_});
  for (const auto* body : {"", "{", "[]", "{\"prompt\":\"a\"", "{\"prompt\":\"a\",\"stream\":\"yes\"}"}) {
    const auto answer = router.post("/v1/completions", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(answer.header("Content-Type"), "application/json");
    const auto error = json::parse(answer.body)["error"];
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_EQ(error["code"], 400);
    EXPECT_TRUE(error.contains("param"));
  }
  EXPECT_EQ(prefill_.count(), 0U);
  EXPECT_EQ(router.metric("eldr_router_refused_total{reason=\"bad_json\"}"), 5);
  EXPECT_EQ(router.post("/v1/completions", kBody, {{"Content-Encoding", "gzip"}}).status, 415);
}

TEST_F(BadRequestTest, AConnectionSurvivesARefusedBody) {
  TestRouter router({&prefill_}, {&decode_});
  RawClient client(router.port());
  client.post("/v1/completions", "{");
  EXPECT_EQ(status_of(client.read_answer()), 400);
  client.post("/v1/completions", kBody);
  EXPECT_EQ(status_of(client.read_answer()), 200);
}

TEST_F(BadRequestTest, TooLargeBodiesAreRefusedBeforeTheyAreRead) {
  TestRouter router({&prefill_}, {&decode_}, "limits: {bodyBytes: 1000}\n");
  RawClient announced(router.port());
  announced.send("POST /v1/completions HTTP/1.1\r\nHost: r\r\nContent-Length: 5000000\r\n\r\n");
  EXPECT_EQ(status_of(announced.read_answer()), 413);
  RawClient chunked(router.port());
  chunked.send("POST /v1/completions HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) chunked.send("64\r\n" + std::string(100, 'x') + "\r\n");
  EXPECT_EQ(status_of(chunked.read_answer()), 413);
  RawClient sends_all(router.port());
  sends_all.post("/v1/completions", std::string(3'000'000, 'x'));
  EXPECT_EQ(status_of(sends_all.read_answer()), 413);  // the answer is not lost in a reset
  EXPECT_EQ(router.metric("eldr_router_refused_total{reason=\"too_large\"}"), 3);
}

TEST_F(BadRequestTest, BadHeadsAreRefused) {
  TestRouter router({&prefill_}, {&decode_}, "limits: {headerBytes: 2000}\n");
  for (const std::string head :
       {"NONSENSE\r\n\r\n", "POST /v1/completions HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET /v1/models HTTP/3.0\r\n\r\n"}) {
    RawClient client(router.port());
    client.send(head);
    EXPECT_EQ(status_of(client.read_answer()), 400) << head;
    EXPECT_EQ(client.read_to_end(), "");
    EXPECT_TRUE(client.ended());
  }
  RawClient large(router.port());
  large.send("GET /v1/models HTTP/1.1\r\nX: " + std::string(3000, 'x'));
  EXPECT_EQ(status_of(large.read_answer()), 431);
}

TEST_F(BadRequestTest, SlowClientsMeetTheirDeadlines) {
  TestRouter router({&prefill_}, {&decode_},
                    "timeouts: {headerSeconds: 0.2, bodySeconds: 0.2, keepAliveSeconds: 0.2}\n");
  RawClient head(router.port());
  head.send("POST /v1/completions HTTP/1.1\r\n");
  EXPECT_EQ(status_of(head.read_answer()), 408);
  RawClient body(router.port());
  body.send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n\r\n{");
  EXPECT_EQ(status_of(body.read_answer()), 408);
  RawClient silent(router.port());
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_TRUE(silent.ended());
  RawClient idle(router.port());
  idle.post("/v1/completions", kBody);
  EXPECT_EQ(status_of(idle.read_answer()), 200);
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.ended());
}

TEST_F(BadRequestTest, ExpectContinueIsAnswered) {
  TestRouter router({&prefill_}, {&decode_});
  RawClient client(router.port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: r\r\nExpect: 100-continue\r\nContent-Length: 14\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(kBody);
  EXPECT_EQ(status_of(client.read_answer()), 200);
  EXPECT_EQ(decode_.requests()[0].header("Expect"), "");
}

TEST_F(BadRequestTest, RequestsAndConnectionsHaveLimits) {
  prefill_.answer_with(hangs());
  TestRouter router({&prefill_}, {&decode_}, "limits: {inFlight: 1, connections: 3}\n");
  RawClient first(router.port());
  first.post("/v1/completions", kBody);
  ASSERT_TRUE(soon([&] { return prefill_.count() == 1; }));
  RawClient second(router.port());
  second.post("/v1/completions", kBody);
  const auto refused = second.read_answer();
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_EQ(header_of(refused, "Retry-After"), "1");
  RawClient third(router.port());
  RawClient fourth(router.port());
  RawClient fifth(router.port());
  const auto turned_away = fifth.read_to_end(milliseconds(2000));
  EXPECT_EQ(status_of(turned_away), 503);
  EXPECT_TRUE(router.metric_becomes("eldr_router_refused_total{reason=\"in_flight\"}", 1));
}

TEST(Drain, StreamsEndAndNewConnectionsAreRefused) {
  FakeWorker prefill(prefilled());
  FakeWorker decode(decoded(10, milliseconds(60)));
  TestRouter router({&prefill}, {&decode});
  RawClient idle(router.port());
  idle.post("/v1/completions", kBody);
  EXPECT_EQ(status_of(idle.read_answer()), 200);
  RawClient streaming(router.port());
  streaming.post("/v1/completions", kStream);
  static_cast<void>(streaming.read_until("\"token\":0"));
  router->leave_service();
  EXPECT_EQ(router.admin("GET", "/readyz").status, 503);
  auto drained = std::async(std::launch::async, [&] { return router->drain(); });
  const auto rest = streaming.read_to_end();
  EXPECT_TRUE(rest.ends_with("0\r\n\r\n")) << rest;
  EXPECT_NE(rest.find("\"token\":9"), std::string::npos);
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(idle.read_to_end(), "");
  EXPECT_TRUE(idle.ended());
}

TEST(Drain, HasALimit) {
  FakeWorker prefill(prefilled());
  const SharedCount went;
  FakeWorker decode(streams_on(went));
  TestRouter router({&prefill}, {&decode}, "drainSeconds: 0.3\n");
  RawClient client(router.port());
  client.post("/v1/completions", kStream);
  static_cast<void>(client.read_until("data: {}"));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE(router->drain());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_TRUE(soon([&] { return went.value() == 1; }));
}

TEST(Load, ManyClientsAtOnceAllGetTheirOwnAnswers) {
  FakeWorker prefill(prefilled());
  FakeWorker one(decoded());
  FakeWorker two(decoded());
  TestRouter router({&prefill}, {&one, &two});
  std::atomic<int> right{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([&, c] {
      RawClient client(router.port());
      for (int i = 0; i < 25; ++i) {
        const std::string id = std::to_string(c) + "-" + std::to_string(i);
        client.post("/v1/completions", i % 2 == 0 ? kBody : kStream, "X-Request-Id: " + id + "\r\n");
        const auto answer = client.read_answer();
        if (status_of(answer) == 200 && header_of(answer, "X-Request-Id") == id) ++right;
      }
    });
  for (auto& client : clients) client.join();
  EXPECT_EQ(right, 200);
  EXPECT_EQ(one.count() + two.count(), 200U);
  EXPECT_TRUE(router.metric_becomes("eldr_router_in_flight_requests", 0));
}

}  // namespace
}  // namespace eldr::router::testing

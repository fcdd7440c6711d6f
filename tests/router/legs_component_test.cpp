// SPDX-License-Identifier: Apache-2.0
// Requests that go well: what each leg is sent and what the client gets.
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/signature/counts.h"
#include "tests/router/support/test_router.h"
#include "tests/signature/samples.h"

namespace eldr::router::testing {
namespace {

using nlohmann::json;

json without(json object, std::initializer_list<const char*> keys) {
  for (const auto* key : keys) object.erase(key);
  return object;
}

class LegsTest : public ::testing::Test {
 protected:
  FakeWorker prefill_{prefilled()};
  FakeWorker decode_{decoded()};
};

TEST_F(LegsTest, ACompletionGoesThroughBothLegs) {
  TestRouter router({&prefill_}, {&decode_});
  const std::string body = R"({"model":"m","prompt":"hello","max_tokens":16,"temperature":0.5})";
  const auto answer =
      router.post("/v1/completions", body, {{"Authorization", "Bearer t"}, {"X-Sim-Label", "code"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::parse(answer.body)["usage"]["prompt_tokens"], 7);
  EXPECT_EQ(answer.header("X-Worker-Header"), "kept");
  ASSERT_EQ(prefill_.count(), 1U);
  ASSERT_EQ(decode_.count(), 1U);
  const auto first = prefill_.requests()[0];
  const auto second = decode_.requests()[0];
  EXPECT_EQ(first.path, "/v1/completions");
  const auto sent = json::parse(first.body);
  EXPECT_EQ(sent["max_tokens"], 1);
  EXPECT_EQ(sent["stream"], false);
  EXPECT_EQ(sent["kv_transfer_params"]["do_remote_decode"], true);
  EXPECT_EQ(sent["temperature"], 0.5);
  const auto received = json::parse(second.body);
  EXPECT_EQ(without(received, {"kv_transfer_params"}), json::parse(body));
  EXPECT_EQ(received["kv_transfer_params"],
            json::parse(R"({"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[[1,2,3]],)"
                        R"("remote_host":"10.0.0.1","remote_port":5600,"new_key":{"a":1.5}})"));
  EXPECT_NE(second.body.find("1.50"), std::string::npos);  // relayed as bytes, not printed again
  for (const auto& request : {first, second}) {
    EXPECT_EQ(request.header("Authorization"), "Bearer t");
    EXPECT_EQ(request.header("X-Sim-Label"), "code");
    EXPECT_EQ(request.header("X-Request-Id").size(), 32U);
  }
  EXPECT_EQ(first.header("X-Request-Id"), second.header("X-Request-Id"));
  EXPECT_EQ(answer.header("X-Request-Id"), first.header("X-Request-Id"));
}

TEST_F(LegsTest, TheClientsRequestIdIsKept) {
  TestRouter router({&prefill_}, {&decode_});
  const auto answer = router.post("/v1/completions", R"({"prompt":"p"})", {{"X-Request-Id", "mine-1"}});
  EXPECT_EQ(answer.header("X-Request-Id"), "mine-1");
  EXPECT_EQ(prefill_.requests()[0].header("X-Request-Id"), "mine-1");
  EXPECT_EQ(decode_.requests()[0].header("X-Request-Id"), "mine-1");
}

TEST_F(LegsTest, AStreamedChatArrivesPieceByPiece) {
  decode_.answer_with(decoded(4, std::chrono::milliseconds(150)));
  TestRouter router({&prefill_}, {&decode_});
  RawClient client(router.port());
  client.post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}})");
  const auto began = std::chrono::steady_clock::now();
  const auto first = client.read_until("{\"token\":0}\n\n");
  EXPECT_NE(first.find("text/event-stream"), std::string::npos);
  EXPECT_EQ(first.find("\"token\":1"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(400));
  const auto rest = client.read_until("0\r\n\r\n");
  EXPECT_NE(rest.find("\"token\":3"), std::string::npos);
  EXPECT_NE(rest.find("\"usage\":{\"completion_tokens\":3}"), std::string::npos);
  EXPECT_NE(rest.find("[DONE]"), std::string::npos);
  const auto sent = json::parse(prefill_.requests()[0].body);
  EXPECT_EQ(sent["max_completion_tokens"], 1);
  EXPECT_FALSE(sent.contains("stream_options"));
  EXPECT_EQ(json::parse(decode_.requests()[0].body)["stream_options"]["include_usage"], true);
}

TEST_F(LegsTest, LargeBodiesArriveByteForByte) {
  TestRouter router({&prefill_}, {&decode_});
  std::string prompt;
  while (prompt.size() < 220'000)
    prompt += "caf\xc3\xa9 \\u00e9 \\\"quoted\\\" \xf0\x9f\x98\x80 {[\\\\]} \\n";
  const std::string body = "{ \"prompt\" :\t\"" + prompt + "\" ,\n\"max_tokens\": 5}";
  EXPECT_EQ(router.post("/v1/completions", body).status, 200);
  const auto received = decode_.requests()[0].body;
  EXPECT_EQ(received.substr(0, body.size() - 1), body.substr(0, body.size() - 1));
  const auto sent = prefill_.requests()[0].body;
  EXPECT_EQ(sent.substr(0, prompt.size() + 15), body.substr(0, prompt.size() + 15));
}

TEST_F(LegsTest, ChunkedRequestBodiesAreRead) {
  TestRouter router({&prefill_}, {&decode_});
  RawClient client(router.port());
  client.send("POST /v1/completions HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.send("8\r\n{\"prompt\r\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  client.send("7;x=y\r\n\":\"hi\"}\r\n0\r\n\r\n");
  EXPECT_EQ(status_of(client.read_answer()), 200);
  EXPECT_EQ(json::parse(decode_.requests()[0].body)["prompt"], "hi");
}

TEST_F(LegsTest, ConnectionsAreKeptOnBothSides) {
  TestRouter router({&prefill_}, {&decode_}, "threads: 1\n");
  RawClient client(router.port());
  for (int i = 0; i < 20; ++i) {
    client.post("/v1/completions", i % 2 == 0 ? R"({"prompt":"p"})" : R"({"prompt":"p","stream":true})");
    ASSERT_EQ(status_of(client.read_answer()), 200) << i;
  }
  EXPECT_FALSE(client.ended());
  EXPECT_EQ(prefill_.connections(), 1U);
  EXPECT_EQ(decode_.connections(), 1U);
}

TEST_F(LegsTest, RequestsSentAheadAreAnsweredInOrder) {
  TestRouter router({&prefill_}, {&decode_});
  RawClient client(router.port());
  std::string both;
  for (const auto* id : {"one", "two", "three"})
    both += std::string("POST /v1/completions HTTP/1.1\r\nHost: r\r\nX-Request-Id: ") + id +
            "\r\nContent-Length: 14\r\n\r\n{\"prompt\":\"p\"}";
  client.send(both);
  for (const auto* id : {"one", "two", "three"}) {
    const auto answer = client.read_answer();
    EXPECT_EQ(status_of(answer), 200);
    EXPECT_EQ(header_of(answer, "X-Request-Id"), id);
  }
}

TEST_F(LegsTest, AnOldClientGetsItsStreamWithoutChunks) {
  TestRouter router({&prefill_}, {&decode_});
  RawClient client(router.port());
  const std::string body = R"({"prompt":"p","stream":true})";
  client.send("POST /v1/completions HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  const auto answer = client.read_to_end();
  EXPECT_EQ(answer.find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("data: [DONE]\n\n")) << answer;
}

TEST_F(LegsTest, OtherPathsGoToADecodeWorker) {
  TestRouter router({&prefill_}, {&decode_});
  decode_.answer_with(status_answer(200, R"({"data":[{"id":"m"}]})"));
  EXPECT_EQ(router.get("/v1/models").body, R"({"data":[{"id":"m"}]})");
  EXPECT_EQ(router.post("/tokenize", R"({"prompt":"x"})").status, 200);
  EXPECT_EQ(decode_.requests().back().body, R"({"prompt":"x"})");
  EXPECT_EQ(prefill_.count(), 0U);
  EXPECT_EQ(router.get("/elsewhere").status, 404);
  EXPECT_EQ(router.get("/v1/completions").status, 405);
}

TEST_F(LegsTest, ManyPromptsAndChoicesGoWholeToADecodeWorker) {
  TestRouter router({&prefill_}, {&decode_});
  for (const auto* body : {R"({"prompt":["a","b"]})", R"({"prompt":"a","n":2})"}) {
    const auto answer = router.post("/v1/completions", body, {{"X-Eldr-Debug", "1"}});
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("X-Eldr-Reason"), "whole");
    EXPECT_EQ(decode_.requests().back().body, body);
  }
  EXPECT_EQ(prefill_.count(), 0U);
}

class SignatureRoutingTest : public ::testing::Test {
 protected:
  SignatureRoutingTest() {
    bytes_ = *signature::serialize_centroids(set_);
    for (int i = 0; i < 4; ++i) {
      workers_.push_back(std::make_unique<FakeWorker>(decoded()));
      decode_.push_back(workers_.back().get());
    }
  }
  std::string counts_like(Eigen::Index row) const {
    signature::ExpertCounts counts;
    counts.layers = set_.spec.layers;
    counts.experts = set_.spec.experts;
    counts.tokens = counts.counted = 100;
    for (Eigen::Index i = 0; i < set_.centroids.cols(); ++i) {
      const float weight = set_.spec.idf.data()[i];
      counts.counts.push_back(
          weight > 1e-6F ? static_cast<std::uint32_t>(10000 * set_.centroids(row, i) / weight) : 0);
    }
    return json{{"v", 1},
                {"experts", counts.experts},
                {"layers", counts.layers},
                {"dtype", "u32"},
                {"counts", signature::encode_wire_counts(counts, true)},
                {"tokens", 100},
                {"counted", 100}}
        .dump();
  }

  signature::CentroidSet set_ = signature::samples::centroids(3);
  std::vector<std::byte> bytes_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::vector<FakeWorker*> decode_;
  FakeWorker prefill_{prefilled()};
};

TEST_F(SignatureRoutingTest, CountsChooseTheWorkerAndNeverReachIt) {
  TestRouter router({&prefill_}, decode_, "routing: {tau: 0}\n", bytes_);
  for (int row = 0; row < 4; ++row) {
    prefill_.answer_with(prefilled(counts_like(row)));
    const auto answer = router.post("/v1/completions", R"({"prompt":"p"})", {{"X-Eldr-Debug", "1"}});
    EXPECT_EQ(answer.header("X-Eldr-Cluster"), std::to_string(row));
    EXPECT_EQ(answer.header("X-Eldr-Worker"), decode_[static_cast<std::size_t>(row)]->id());
    EXPECT_EQ(answer.header("X-Eldr-Reason"), "signature");
    EXPECT_EQ(answer.header("X-Eldr-Policy"), "LocalityBand");
    EXPECT_EQ(answer.header("X-Eldr-Band"), "1");
    EXPECT_GT(std::stod(std::string(answer.header("X-Eldr-Best-Similarity"))), 0.99);
    EXPECT_EQ(answer.header("X-Eldr-Prefill-Worker"), prefill_.id());
    ASSERT_EQ(decode_[static_cast<std::size_t>(row)]->count(), 1U);
    EXPECT_EQ(decode_[static_cast<std::size_t>(row)]->requests()[0].body.find("eldr"), std::string::npos);
  }
  EXPECT_EQ(json::parse(prefill_.requests()[0].body)["kv_transfer_params"]["eldr"]["layers"],
            json(set_.spec.layers));
  EXPECT_EQ(router.metric("eldr_router_decisions_total{policy=\"LocalityBand\",reason=\"signature\"}"), 4);
  EXPECT_EQ(router.metric("eldr_router_best_similarity_count"), 4);
}

TEST_F(SignatureRoutingTest, TheDebugHeadersComeOnlyWhenAskedFor) {
  TestRouter router({&prefill_}, decode_, "", bytes_);
  EXPECT_EQ(router.post("/v1/completions", R"({"prompt":"p"})").header("X-Eldr-Worker"), "");
}

TEST_F(SignatureRoutingTest, BadCountsFallBackByReasonAndNeverFail) {
  TestRouter router({&prefill_}, decode_, "", bytes_);
  auto low = json::parse(counts_like(0));
  low["counted"] = 10;
  auto shape = json::parse(counts_like(0));
  shape["layers"] = json::array({77});
  const std::vector<std::pair<std::string, std::string>> cases = {{"", "no_counts"},
                                                                  {"null", "malformed"},
                                                                  {"{}", "malformed"},
                                                                  {"\"x\"", "malformed"},
                                                                  {R"({"v":1,"counts":5})", "malformed"},
                                                                  {low.dump(), "low_coverage"},
                                                                  {shape.dump(), "malformed"}};
  for (const auto& [eldr, reason] : cases) {
    prefill_.answer_with(prefilled(eldr));
    const auto answer = router.post("/v1/completions", R"({"prompt":"p"})", {{"X-Eldr-Debug", "1"}});
    EXPECT_EQ(answer.status, 200) << eldr;
    EXPECT_EQ(answer.header("X-Eldr-Reason"), reason) << eldr;
  }
  EXPECT_EQ(router.metric("eldr_router_decisions_total{policy=\"LocalityBand\",reason=\"malformed\"}"), 5);
  EXPECT_EQ(router.metric("eldr_router_decisions_total{policy=\"LocalityBand\",reason=\"low_coverage\"}"), 1);
}

TEST_F(SignatureRoutingTest, WithoutATransferTheDecodeWorkerPrefills) {
  prefill_.answer_with(
      status_answer(200, R"({"choices":[{"finish_reason":"stop"}],"kv_transfer_params":null})"));
  TestRouter router({&prefill_}, {decode_[0]});
  const auto answer = router.post("/v1/completions", R"({"prompt":"p"})", {{"X-Eldr-Debug", "1"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("X-Eldr-Reason"), "no_transfer");
  EXPECT_EQ(decode_[0]->requests()[0].body, R"({"prompt":"p"})");
}

}  // namespace
}  // namespace eldr::router::testing

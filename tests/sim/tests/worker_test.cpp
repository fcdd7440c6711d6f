// SPDX-License-Identifier: Apache-2.0
// Workers on real sockets: the API as clients and routers meet it.
#include <atomic>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/base/digest.h"
#include "lib/http/client.h"
#include "tests/sim/host.h"

namespace eldr::sim {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;

const std::string kCode =
    "Write a Python function that returns the sum of a list of integers without a loop.";

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within = 5s) {
  const auto end = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

// One worker in this process, and what a client says to it.
class Running {
 public:
  explicit Running(Role role, const std::function<void(WorkerOptions&)>& change = {}) {
    ModelShape shape;
    shape.layers = {0, 1, 2, 3};
    shape.experts = 32;
    shape.top_k = 4;
    model_ = make_profile_model(shape, 1);
    WorkerOptions options;
    options.role = role;
    options.model = "m";
    options.cost.time_scale = 0.2;
    options.instance = ++instances_;
    if (change) {
      change(options);
    }
    WorkerHooks hooks;
    hooks.die = [this] { died = true; };
    auto host = Host::start({}, options, *model_, clock_, hooks);
    EXPECT_TRUE(host) << host.error().message;
    host_ = std::move(*host);
  }

  http::ClientResponse call(const std::string& method, const std::string& path, const std::string& body = "",
                            const http::Headers& headers = {}) {
    const auto answer = http::fetch({"127.0.0.1", host_->port(), method, path, headers, body});
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : http::ClientResponse{};
  }
  http::ClientResponse post(const std::string& path, const json& body, const http::Headers& headers = {}) {
    return call("POST", path, body.dump(), headers);
  }
  json complete(const json& body, const http::Headers& headers = {}) {
    const auto answer = post("/v1/completions", body, headers);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body, nullptr, false);
  }
  Result<http::ClientResponse> try_complete(const json& body, std::chrono::milliseconds deadline = 5s) {
    return http::fetch({"127.0.0.1", host_->port(), "POST", "/v1/completions", {}, body.dump()},
                       {deadline, 1U << 20U});
  }
  json stats() { return json::parse(call("GET", "/sim/stats").body); }
  void fault(const json& fault) { EXPECT_EQ(post("/sim/fault", fault).status, 200); }
  Host& host() { return *host_; }
  std::uint16_t port() const { return host_->port(); }

  std::atomic<bool> died{false};

 private:
  static inline std::uint64_t instances_ = 0;
  RealClock clock_;
  std::unique_ptr<ExpertModel> model_;
  std::unique_ptr<Host> host_;
};

// The events of a stream, without "data: "; the framing is checked.
std::vector<std::string> events_of(const std::string& body) {
  std::vector<std::string> events;
  std::size_t at = 0;
  while (at < body.size()) {
    const auto end = body.find("\n\n", at);
    EXPECT_NE(end, std::string::npos) << "an event does not end";
    const std::string event = body.substr(at, end - at);
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    events.push_back(event.substr(6));
    at = end == std::string::npos ? body.size() : end + 2;
  }
  return events;
}

json prefill_body(const std::string& prompt) {
  return {{"model", "m"},
          {"prompt", prompt},
          {"max_tokens", 1},
          {"stream", false},
          {"kv_transfer_params",
           {{"do_remote_decode", true},
            {"do_remote_prefill", false},
            {"remote_engine_id", nullptr},
            {"remote_block_ids", nullptr},
            {"remote_host", nullptr},
            {"remote_port", nullptr}}}};
}

TEST(Worker, AnswersTheSmallEndpoints) {
  Running w(Role::kDecode);
  EXPECT_EQ(w.call("GET", "/health").status, 200);
  EXPECT_EQ(w.call("GET", "/health").body, "");
  EXPECT_EQ(json::parse(w.call("GET", "/v1/models").body)["data"][0]["id"], "m");
  EXPECT_TRUE(json::parse(w.call("GET", "/version").body).contains("version"));
  EXPECT_EQ(json::parse(w.call("GET", "/load").body)["server_load"], 0);
  const json tokens = json::parse(w.post("/tokenize", {{"model", "m"}, {"prompt", "Hello world"}}).body);
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_GT(tokens["count"], 2);
  EXPECT_EQ(w.call("GET", "/nowhere").status, 404);
  EXPECT_EQ(w.call("GET", "/nowhere").body, R"({"detail":"Not Found"})");
  EXPECT_EQ(w.call("GET", "/v1/completions").status, 405);
}

TEST(Worker, CompletesAndCountsTokens) {
  Running w(Role::kDecode);
  const json answer =
      w.complete({{"model", "m"}, {"prompt", kCode}, {"max_tokens", 7}}, {{"X-Request-Id", "abc"}});
  EXPECT_EQ(answer["id"], "cmpl-abc");
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 7);
  const json tokens = json::parse(w.post("/tokenize", {{"prompt", kCode}}).body);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], tokens["count"]);
  EXPECT_TRUE(answer["kv_transfer_params"].is_null());
  EXPECT_EQ(w.complete({{"prompt", kCode}, {"max_tokens", 7}})["choices"],
            answer["choices"]);  // deterministic
}

TEST(Worker, HasTheDefaultsOfTheApi) {
  Running w(Role::kDecode);
  EXPECT_EQ(w.complete({{"prompt", kCode}})["usage"]["completion_tokens"], 16);
  const json chat = json::parse(
      w.post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", kCode}}}}}).body);
  EXPECT_EQ(chat["choices"][0]["finish_reason"], "stop");
  EXPECT_GE(chat["usage"]["completion_tokens"], 40);
  EXPECT_EQ(chat["choices"][0]["message"]["role"], "assistant");
}

TEST(Worker, HonoursTheLengths) {
  Running w(Role::kDecode);
  EXPECT_EQ(w.complete(
                {{"prompt", kCode}, {"max_tokens", 900}, {"ignore_eos", true}})["usage"]["completion_tokens"],
            900);
  const json natural = w.complete({{"prompt", kCode}, {"max_tokens", 900}});
  EXPECT_EQ(natural["choices"][0]["finish_reason"], "stop");
  const int length = natural["usage"]["completion_tokens"];
  EXPECT_LT(length, 900);
  EXPECT_EQ(
      w.complete(
          {{"prompt", kCode}, {"max_tokens", 900}, {"min_tokens", length + 9}})["usage"]["completion_tokens"],
      length + 9);
  const json chat =
      json::parse(w.post("/v1/chat/completions", {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                                                  {"max_tokens", 9},
                                                  {"max_completion_tokens", 3}})
                      .body);
  EXPECT_EQ(chat["usage"]["completion_tokens"], 3);
}

TEST(Worker, GivesSeveralAnswersToSeveralPrompts) {
  Running w(Role::kDecode);
  const json answer = w.complete(
      {{"prompt", {kCode, "How many apples are 3 and 4?"}}, {"n", 2}, {"max_tokens", 5}, {"echo", true}});
  ASSERT_EQ(answer["choices"].size(), 4U);
  EXPECT_NE(answer["choices"][0]["text"], answer["choices"][1]["text"]);
  EXPECT_THAT(answer["choices"][1]["text"].get<std::string>(), ::testing::StartsWith(kCode));
  EXPECT_THAT(answer["choices"][2]["text"].get<std::string>(), ::testing::StartsWith("How many"));
  EXPECT_EQ(answer["usage"]["completion_tokens"], 20);
  EXPECT_EQ(w.complete({{"prompt", {1, 2, 3}}, {"max_tokens", 1}})["usage"]["prompt_tokens"], 3);
}

TEST(Worker, StreamsEventsThatJoinToTheWholeAnswer) {
  Running w(Role::kDecode);
  const json body = {{"model", "m"}, {"prompt", kCode}, {"max_tokens", 9}};
  const std::string whole = w.complete(body)["choices"][0]["text"];
  json streamed = body;
  streamed["stream"] = true;
  streamed["stream_options"] = {{"include_usage", true}};
  const auto answer = w.post("/v1/completions", streamed);
  EXPECT_THAT(std::string(answer.header("content-type")), ::testing::StartsWith("text/event-stream"));
  const auto events = events_of(answer.body);
  ASSERT_EQ(events.size(), 11U);  // 9 tokens, usage, [DONE]
  std::string text;
  for (std::size_t i = 0; i < 9; ++i) {
    const json event = json::parse(events[i]);
    text += event["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(event["choices"][0]["finish_reason"].is_null(), i < 8);
    EXPECT_TRUE(event["usage"].is_null());
  }
  EXPECT_EQ(text, whole);
  EXPECT_EQ(json::parse(events[9])["usage"]["completion_tokens"], 9);
  EXPECT_EQ(events[10], "[DONE]");
  streamed.erase("stream_options");
  EXPECT_EQ(events_of(w.post("/v1/completions", streamed).body).size(), 10U);
}

TEST(Worker, StreamsChatChoicesSideBySide) {
  Running w(Role::kDecode);
  const auto events = events_of(
      w.post("/v1/chat/completions",
             {{"messages", {{{"role", "user"}, {"content", {{{"type", "text"}, {"text", kCode}}}}}}},
              {"max_tokens", 4},
              {"n", 2},
              {"stream", true}})
          .body);
  ASSERT_EQ(events.size(), 11U);  // two roles, 2 * 4 tokens, [DONE]
  std::map<int, std::string> finish;
  std::map<int, int> tokens;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    const json choice = json::parse(events[i])["choices"][0];
    if (choice["delta"].contains("role")) {
      EXPECT_EQ(tokens[choice["index"]], 0);
    } else {
      ++tokens[choice["index"]];
    }
    if (!choice["finish_reason"].is_null()) {
      finish[choice["index"]] = choice["finish_reason"];
    }
  }
  EXPECT_EQ(tokens, (std::map<int, int>{{0, 4}, {1, 4}}));
  EXPECT_EQ(finish, (std::map<int, std::string>{{0, "length"}, {1, "length"}}));
}

TEST(Worker, RefusesBadRequestsAsVllmDoes) {
  Running w(Role::kDecode, [](WorkerOptions& o) { o.max_model_len = 100; });
  const struct {
    std::string body;
    int status;
    const char* type;
    const char* message;
  } cases[] = {
      {"{", 400, "BadRequestError", "JSON decode error"},
      {"[]", 400, "BadRequestError", "dictionary"},
      {R"({"model":"other","prompt":"a"})", 404, "NotFoundError", "The model `other` does not exist."},
      {R"({"model":3,"prompt":"a"})", 400, "BadRequestError", "model"},
      {R"({"model":"m"})", 400, "BadRequestError", "prompt"},
      {R"({"prompt":""})", 400, "BadRequestError", "empty"},
      {R"({"prompt":[{}]})", 400, "BadRequestError", "token ids"},
      {R"({"prompt":"a","max_tokens":0})", 400, "BadRequestError", "max_tokens must be at least 1, got 0."},
      {R"({"prompt":"a","max_tokens":"x"})", 400, "BadRequestError", "max_tokens"},
      {R"({"prompt":"a","max_tokens":200})", 400, "BadRequestError", "maximum context length is 100 tokens"},
      {R"({"prompt":"a","max_tokens":5,"min_tokens":6})", 400, "BadRequestError", "min_tokens"},
      {R"({"prompt":"a","n":0})", 400, "BadRequestError", "n must be"},
      {R"({"prompt":"a","n":1000})", 400, "BadRequestError", "n must be"},
      {R"({"prompt":"a","stream":"yes"})", 400, "BadRequestError", "stream"},
      {R"({"prompt":"a","stream_options":{"include_usage":true}})", 400, "BadRequestError", "Stream options"},
  };
  for (const auto& c : cases) {
    const auto answer = w.call("POST", "/v1/completions", c.body);
    EXPECT_EQ(answer.status, c.status) << c.body;
    const json error = json::parse(answer.body)["error"];
    EXPECT_EQ(error["type"], c.type) << c.body;
    EXPECT_EQ(error["code"], c.status) << c.body;
    EXPECT_TRUE(error.contains("param")) << c.body;
    EXPECT_THAT(error["message"].get<std::string>(), HasSubstr(c.message)) << c.body;
  }
  EXPECT_EQ(w.post("/v1/chat/completions", {{"model", "m"}}).status, 400);
  EXPECT_EQ(w.post("/v1/chat/completions", {{"messages", {{{"content", "x"}}}}}).status, 400);
}

TEST(PrefillDecode, HandsOverCountsAndBlocks) {
  Running prefill(Role::kPrefill);
  Running decode(Role::kDecode);
  json body = prefill_body(kCode);
  body["kv_transfer_params"]["eldr"] = {{"layers", {2, 0}}};
  const json answer = prefill.complete(body, {{"X-Request-Id", "r1"}});
  json params = answer["kv_transfer_params"];
  EXPECT_EQ(params["do_remote_prefill"], true);
  EXPECT_EQ(params["do_remote_decode"], false);
  EXPECT_EQ(params["remote_host"], "127.0.0.1");
  EXPECT_EQ(params["remote_port"], prefill.port());
  EXPECT_TRUE(params["remote_block_ids"][0].is_array());
  EXPECT_EQ(params["remote_num_tokens"], answer["usage"]["prompt_tokens"]);
  EXPECT_EQ(params["eldr"]["layers"], json({2, 0}));
  EXPECT_EQ(params["eldr"]["tokens"], answer["usage"]["prompt_tokens"]);
  EXPECT_EQ(prefill.stats()["leases"]["now"], 1);
  EXPECT_GT(prefill.stats()["kv"]["used"], 0);

  params.erase("eldr");
  const json whole = decode.complete({{"prompt", kCode}, {"max_tokens", 5}, {"kv_transfer_params", params}},
                                     {{"X-Request-Id", "r1"}});
  EXPECT_EQ(whole["usage"]["completion_tokens"], 5);
  EXPECT_EQ(prefill.stats()["leases"]["pulled"], 1);
  EXPECT_EQ(prefill.stats()["kv"]["used"], 0);
  const json events = decode.stats()["events"];
  EXPECT_EQ(events, json({{"kv_pulled", 1}}));
  EXPECT_EQ(decode.stats()["decode_tokens"], 5);  // with pulled KV the first token is a decode token too
}

TEST(PrefillDecode, ADecodeLegWithoutBlocksFailsAsAFailedKvLoad) {
  Running prefill(Role::kPrefill, [](WorkerOptions& o) { o.lease = 50ms; });
  Running decode(Role::kDecode);
  json params = prefill.complete(prefill_body(kCode))["kv_transfer_params"];
  params.erase("eldr");
  ASSERT_TRUE(eventually([&] { return prefill.stats()["leases"]["expired"] == 1; }));
  EXPECT_EQ(prefill.stats()["kv"]["used"], 0);
  const json body = {{"prompt", kCode}, {"max_tokens", 5}, {"kv_transfer_params", params}};
  const auto refused = decode.post("/v1/completions", body);
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(json::parse(refused.body)["error"]["type"], "InternalServerError");

  json streamed = body;
  streamed["stream"] = true;
  const auto events = events_of(decode.post("/v1/completions", streamed).body);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(json::parse(events[0])["error"]["code"], 500);
  EXPECT_EQ(events[1], "[DONE]");
  EXPECT_EQ(decode.stats()["events"]["kv_load_failed"], 2);
}

TEST(PrefillDecode, NoticesAnotherPromptAnotherEngineAndLeftovers) {
  Running prefill(Role::kPrefill);
  Running decode(Role::kDecode);
  const auto leg = [&](const std::string& prompt, const std::function<void(json&)>& change) {
    json params = prefill.complete(prefill_body(kCode), {{"X-Request-Id", "a"}})["kv_transfer_params"];
    params.erase("eldr");
    change(params);
    return decode
        .post("/v1/completions", {{"prompt", prompt}, {"max_tokens", 2}, {"kv_transfer_params", params}},
              {{"X-Request-Id", "b"}})
        .status;
  };
  EXPECT_EQ(leg("Another prompt", [](json&) {}), 500);
  EXPECT_EQ(leg(kCode, [](json& p) { p["remote_engine_id"] = "old"; }), 500);
  EXPECT_EQ(leg(kCode, [](json& p) { p["remote_port"] = 1; }), 500);
  EXPECT_EQ(leg(kCode, [](json& p) { p.erase("remote_host"); }),
            200);  // computed here, as the connector does
  EXPECT_EQ(leg(kCode, [](json& p) { p["eldr"] = json::object(); }), 200);
  const json events = decode.stats()["events"];
  EXPECT_EQ(events["kv_of_another_prompt"], 1);
  EXPECT_EQ(events["kv_pull_refused"], 1);
  EXPECT_EQ(events["kv_pull_unreachable"], 1);
  EXPECT_EQ(events["kv_params_incomplete"], 1);
  EXPECT_EQ(events["eldr_key_reached_decode"], 1);
  EXPECT_EQ(events["request_id_differs"], 1);
}

TEST(PrefillDecode, APrefillWorkerWithoutFreeBlocksMakesRequestsWait) {
  Running prefill(Role::kPrefill, [](WorkerOptions& o) {
    o.kv_blocks = 3;  // one prompt of kCode at a time
    o.lease = 200ms;
  });
  const auto begin = std::chrono::steady_clock::now();
  prefill.complete(prefill_body(kCode));
  prefill.complete(prefill_body(kCode));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 190ms);
  EXPECT_EQ(prefill.stats()["leases"]["expired"], 1);
}

TEST(PrefillDecode, PrefixHitsShowInMetrics) {
  Running w(Role::kPrefill);
  w.complete(prefill_body(kCode));
  w.complete(prefill_body(kCode));
  const std::string text = w.call("GET", "/metrics").body;
  for (const char* name :
       {"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
        "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "vllm:prompt_tokens_total",
        "vllm:generation_tokens_total", "vllm:num_preemptions_total",
        "vllm:time_to_first_token_seconds_bucket", "vllm:inter_token_latency_seconds_count",
        "vllm:request_time_per_output_token_seconds_sum", "vllm:e2e_request_latency_seconds_bucket"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + name + "{engine=\"0\"")) << name;
  }
  EXPECT_THAT(text, HasSubstr("vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"m\"} 16"));
}

TEST(Engine, ReturnsRoutedExpertsOfPromptAndAnswer) {
  Running w(Role::kEngine);
  const json answer = w.complete({{"prompt", kCode}, {"max_tokens", 6}, {"n", 2}});
  const std::size_t prompt = answer["usage"]["prompt_tokens"];
  for (const json& choice : answer["choices"]) {
    const auto bytes = base64_decode(choice["routed_experts"].get<std::string>(), 1U << 20U);
    ASSERT_TRUE(bytes);
    const std::string file(as_text(*bytes));
    EXPECT_THAT(file, HasSubstr("'shape': (" + std::to_string(prompt + 5) + ", 4, 4)"));
    EXPECT_EQ((file.size() - (prompt + 5) * 16) % 64, 0U);
  }
  EXPECT_EQ(w.complete(prefill_body(kCode))["kv_transfer_params"], nullptr);
}

TEST(Engine, PrefillRowsAreThoseThatAPrefillWorkerCounts) {
  Running engine(Role::kEngine);
  Running prefill(Role::kPrefill);
  const json rows = engine.complete({{"prompt", kCode}, {"max_tokens", 1}})["choices"][0]["routed_experts"];
  const std::string file(as_text(*base64_decode(rows.get<std::string>(), 1U << 20U)));
  const json key = prefill.complete(prefill_body(kCode))["kv_transfer_params"]["eldr"];
  const std::size_t prompt = key["tokens"];
  std::vector<std::uint32_t> counts(4 * 32, 0);
  const std::size_t data = file.size() - prompt * 16;
  for (std::size_t i = 0; i < prompt * 16; ++i) {
    ++counts[i / 4 % 4 * 32 + static_cast<unsigned char>(file[data + i])];
  }
  const auto bytes = *base64_decode(key["counts"].get<std::string>(), 1U << 20U);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(static_cast<unsigned>(bytes[2 * i]) + 256 * static_cast<unsigned>(bytes[2 * i + 1]), counts[i])
        << i;
  }
}

TEST(Stats, CountByLabelAndReset) {
  Running w(Role::kDecode);
  w.complete({{"prompt", kCode}, {"max_tokens", 4}});
  w.complete({{"prompt", kCode}, {"max_tokens", 3}}, {{"X-Sim-Label", "mine"}});
  json stats = w.stats();
  EXPECT_EQ(stats["tokens"], 7);
  EXPECT_EQ(stats["requests"], 2);
  EXPECT_EQ(stats["by_label"]["code"]["requests"], 1);
  EXPECT_EQ(stats["by_label"]["mine"]["tokens"], 3);
  EXPECT_DOUBLE_EQ(stats["active_experts"], 4.0);  // one request at a time: top-4
  EXPECT_GT(stats["time_per_output_token_ms"], 0);
  EXPECT_EQ(stats["in_flight"], 0);
  EXPECT_EQ(w.call("POST", "/sim/reset").status, 200);
  stats = w.stats();
  EXPECT_EQ(stats["tokens"], 0);
  EXPECT_TRUE(stats["by_label"].empty());
  EXPECT_DOUBLE_EQ(stats["active_experts"], 0.0);
}

TEST(Timing, ABatchOfOneDomainIsFasterThanAMixedOne) {
  const auto time_of = [](const std::vector<std::string>& prompts) {
    Running w(Role::kDecode, [](WorkerOptions& o) { o.cost.time_scale = 1; });
    std::vector<std::future<void>> clients;
    for (std::size_t i = 0; i < 12; ++i) {
      clients.push_back(std::async(std::launch::async, [&w, &prompts, i] {
        w.complete({{"prompt", prompts[i % prompts.size()] + " Case " + std::to_string(i)},
                    {"max_tokens", 30},
                    {"ignore_eos", true}});
      }));
    }
    for (auto& c : clients) {
      c.get();
    }
    return w.stats()["active_experts"].get<double>();
  };
  const double same = time_of({kCode});
  const double mixed = time_of({kCode, "How many apples are left when 3 of 5 are eaten?",
                                "The patient takes a dose of 5 mg against pain.",
                                "The tenant and the landlord signed a contract with a clause."});
  EXPECT_LT(same, 0.95 * mixed);
}

TEST(Timing, StepsAreAsLongAsTheModelSays) {
  Running w(Role::kDecode, [](WorkerOptions& o) { o.cost.time_scale = 5; });
  w.complete({{"prompt", kCode}, {"max_tokens", 40}, {"ignore_eos", true}});
  // 4 layers * 6 * (25.7 + 3.1 * 4) us * 5
  const double ms = w.stats()["time_per_output_token_ms"];
  EXPECT_GE(ms, 4.3);
  EXPECT_LE(ms, 15);  // a busy machine wakes late
}

TEST(Faults, ErrorsHealthAndTheMissingKeys) {
  Running w(Role::kPrefill);
  w.fault({{"kind", "error-503"}, {"count", 1}});
  EXPECT_EQ(w.post("/v1/completions", prefill_body(kCode)).status, 503);
  w.fault({{"kind", "error-500"}, {"count", 1}});
  const auto failed = w.post("/v1/completions", prefill_body(kCode));
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(json::parse(failed.body)["error"]["type"], "InternalServerError");
  w.fault({{"kind", "no-eldr"}, {"count", 1}});
  EXPECT_FALSE(w.complete(prefill_body(kCode))["kv_transfer_params"].contains("eldr"));
  w.fault({{"kind", "bad-eldr"}, {"form", "dtype"}, {"count", 1}});
  EXPECT_EQ(w.complete(prefill_body(kCode))["kv_transfer_params"]["eldr"]["dtype"], "f64");
  w.fault({{"kind", "no-kv-params"}, {"count", 1}});
  EXPECT_TRUE(w.complete(prefill_body(kCode))["kv_transfer_params"].is_null());
  EXPECT_TRUE(w.complete(prefill_body(kCode))["kv_transfer_params"].contains("eldr"));
  w.fault({{"kind", "unhealthy"}});
  EXPECT_EQ(w.call("GET", "/health").status, 503);
  w.fault({{"kind", "none"}});
  EXPECT_EQ(w.call("GET", "/health").status, 200);
  const auto wrong = w.post("/sim/fault", {{"kind", "explode"}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("error-500"));
}

TEST(Faults, DropResetsAStreamInTheMiddle) {
  Running w(Role::kDecode);
  w.fault({{"kind", "drop"}, {"after", 4}, {"count", 1}});
  std::string got;
  const auto answer = http::fetch({"127.0.0.1",
                                   w.port(),
                                   "POST",
                                   "/v1/completions",
                                   {},
                                   json{{"prompt", kCode}, {"max_tokens", 50}, {"stream", true}}.dump()},
                                  {}, [&](std::string_view piece) {
                                    got += piece;
                                    return true;
                                  });
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kUnavailable);
  EXPECT_THAT(got, HasSubstr("data: "));
  EXPECT_EQ(got.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return w.stats()["running"] == 0; }));
  EXPECT_EQ(w.stats()["events"]["fault_drop"], 1);
}

TEST(Faults, HangAnswersNothingUntilItIsCleared) {
  Running w(Role::kDecode);
  w.fault({{"kind", "hang"}});
  const auto answer = w.try_complete({{"prompt", kCode}, {"max_tokens", 1}}, 100ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kTimeout);
  EXPECT_EQ(w.call("GET", "/health").status, 200);
  w.fault({{"kind", "none"}});
  EXPECT_TRUE(w.try_complete({{"prompt", kCode}, {"max_tokens", 1}}));
}

TEST(Faults, SlowMultipliesTheStep) {
  Running w(Role::kDecode);
  w.fault({{"kind", "slow"}, {"factor", 40}});
  w.complete({{"prompt", kCode}, {"max_tokens", 5}});
  EXPECT_GE(w.stats()["time_per_output_token_ms"].get<double>(), 7.0);  // 0.18 ms without the fault
}

TEST(Faults, RefuseClosesThePortForAWhile) {
  Running w(Role::kDecode);
  w.fault({{"kind", "refuse"}, {"seconds", 0.4}});
  const auto get = [&] { return http::fetch({"127.0.0.1", w.port(), "GET", "/health"}, {1s}); };
  EXPECT_TRUE(eventually([&] { return !get().has_value(); }));
  EXPECT_TRUE(eventually([&] { return get().has_value(); }));
}

TEST(Faults, DieEndsTheProcess) {
  Running w(Role::kDecode);
  w.fault({{"kind", "die"}, {"after", 3}});
  EXPECT_FALSE(w.died);
  (void)w.try_complete({{"prompt", kCode}, {"max_tokens", 10}, {"stream", true}});
  EXPECT_TRUE(w.died);
  Running at_once(Role::kDecode);
  at_once.fault({{"kind", "die"}});
  EXPECT_TRUE(at_once.died);
}

TEST(Clients, ThatGoAwayLeaveTheBatch) {
  Running w(Role::kDecode);
  for (const bool stream : {false, true}) {
    const auto answer = w.try_complete(
        {{"prompt", kCode}, {"max_tokens", 8000}, {"ignore_eos", true}, {"stream", stream}}, 100ms);
    ASSERT_FALSE(answer);
    EXPECT_TRUE(eventually([&] { return w.stats()["running"] == 0; })) << stream;
  }
  EXPECT_EQ(w.stats()["events"]["client_gone"], 2);
  EXPECT_EQ(w.stats()["kv"]["used"], 0);
}

TEST(Limits, AFullQueueAnswers503) {
  Running w(Role::kDecode, [](WorkerOptions& o) {
    o.batch.max_running = 1;
    o.batch.max_waiting = 1;
    o.cost.time_scale = 20;
  });
  std::vector<std::future<int>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::async(std::launch::async, [&] {
      const auto answer = w.try_complete({{"prompt", kCode}, {"max_tokens", 20}, {"ignore_eos", true}}, 20s);
      return answer ? answer->status : 0;
    }));
  }
  int ok = 0;
  int full = 0;
  for (auto& c : clients) {
    const int status = c.get();
    ok += status == 200 ? 1 : 0;
    full += status == 503 ? 1 : 0;
  }
  EXPECT_EQ(ok + full, 4);
  EXPECT_GE(full, 1);
  EXPECT_GE(ok, 1);
}

TEST(End, DrainsWhatRuns) {
  Running w(Role::kDecode, [](WorkerOptions& o) { o.cost.time_scale = 5; });
  auto client = std::async(std::launch::async, [&] {
    return w.try_complete({{"prompt", kCode}, {"max_tokens", 60}, {"ignore_eos", true}, {"stream", true}},
                          20s);
  });
  ASSERT_TRUE(eventually([&] { return w.stats()["running"] == 1; }));
  w.host().stop(20s);
  const auto answer = client.get();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(events_of(answer->body).size(), 61U);
}

TEST(End, CutsWhatOutlastsTheGrace) {
  Running w(Role::kDecode, [](WorkerOptions& o) { o.cost.time_scale = 5; });
  auto client = std::async(std::launch::async, [&] {
    return w.try_complete({{"prompt", kCode}, {"max_tokens", 5000}, {"ignore_eos", true}, {"stream", true}},
                          20s);
  });
  ASSERT_TRUE(eventually([&] { return w.stats()["running"] == 1; }));
  w.host().stop(100ms);
  EXPECT_FALSE(client.get());
}

}  // namespace
}  // namespace eldr::sim

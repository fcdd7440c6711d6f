// SPDX-License-Identifier: Apache-2.0
// Collecting by the program itself: large data sets, crashes, bad lines, other engines, other sources.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "lib/base/digest.h"
#include "lib/signature/trace.h"
#include "tests/calibrator/engine_double.h"
#include "tests/calibrator/program.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;
using testing::Child;
using testing::ChildOptions;
using testing::Ended;
using testing::EngineDouble;
using testing::Program;

class Collect : public Program {
 protected:
  std::vector<std::string> arguments(const std::string& engine, const std::string& dataset,
                                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {
        "collect", "--model", "test-moe",          "--engine",  engine, "--decode-tokens",
        "12",      "--out",   at("t.safetensors"), "--retries", "0"};
    if (!dataset.empty()) {
      all.insert(all.end(), {"--dataset", dataset});
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Largest resident memory of collecting 50 of so many prompts that come through a pipe, about 400 bytes
  /// each.
  long peak_kib(const EngineDouble& engine, std::size_t lines) const {
    const std::string pipe = at("pipe-" + std::to_string(lines));
    EXPECT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    std::jthread writer([&pipe, lines] {
      std::FILE* out = std::fopen(pipe.c_str(), "w");
      const std::string text(350, 'x');
      for (std::size_t line = 0; line < lines; ++line) {
        std::fprintf(out, "{\"prompt\": \"%c %zu %s\", \"label\": \"%zu\"}\n",
                     'a' + static_cast<char>(line % 7), line, text.c_str(), line % 7);
      }
      std::fclose(out);
    });
    const Ended ended = run(arguments(engine.url(), "-", {"--sample-size", "50"}), {.input = pipe});
    EXPECT_EQ(ended.exit, 0) << ended.err;
    EXPECT_EQ(signature::load_trace(at("t.safetensors"))->requests(), 50U);
    return ended.peak_kib;
  }
};

TEST_F(Collect, MemoryDoesNotGrowWithTheDataSet) {
  if (testing::kSanitized) {
    GTEST_SKIP() << "memory is not the program's own under a sanitizer";
  }
  EngineDouble engine;
  const long small = peak_kib(engine, 1000);
  const long large = peak_kib(engine, 200'000);  // 80 MB
  EXPECT_LT(static_cast<double>(large), 1.25 * static_cast<double>(small))
      << small << " and " << large << " KiB";
}

TEST_F(Collect, AKillRepeatsNoFinishedRequest) {
  EngineDouble engine("test-moe", [](std::size_t, const http::Request&, http::ResponseWriter&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return false;
  });
  const auto command = arguments(engine.url(), at("prompts.jsonl"), {"--concurrency", "4"});
  // All prompts are in the sample: the number in a prompt is its number in the resume file.
  std::set<std::size_t> finished;
  std::size_t seen = 0;
  const auto expect_none_repeated = [&] {
    const std::vector<std::string> bodies = engine.bodies();
    for (; seen < bodies.size(); ++seen) {
      const std::string prompt = json::parse(bodies[seen])["prompt"].get<std::string>();
      EXPECT_EQ(finished.count(std::stoul(prompt.substr(prompt.rfind(' ')))), 0U) << prompt;
    }
  };
  for (const std::size_t kill_at : {15, 35}) {
    const Child child(folder_, command);
    for (int i = 0; i < 1000 && engine.completions() < kill_at; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    child.signal(SIGKILL);
    EXPECT_EQ(child.wait().exit, 128 + SIGKILL);
    EXPECT_FALSE(std::filesystem::exists(at("t.safetensors")));
    expect_none_repeated();
    const std::size_t before = finished.size();
    std::ifstream partial(at("t.safetensors.partial"));
    for (std::string line; std::getline(partial, line);) {
      if (const json record = json::parse(line, nullptr, false); record.contains("prefill")) {
        finished.insert(record["i"].get<std::size_t>());
      }
    }
    EXPECT_GT(finished.size(), before);
  }
  const Ended resumed = run(command);
  ASSERT_EQ(resumed.exit, 0) << resumed.err;
  expect_none_repeated();
  EXPECT_LE(engine.completions(), 60U + 2 * 4) << "only what was in flight at a kill was sent again";
  EXPECT_EQ(signature::load_trace(at("t.safetensors"))->requests(), 60U);
  EXPECT_EQ(left_behind(), std::set<std::string>{"t.safetensors"});
}

TEST_F(Collect, FivePercentOfBadLinesAreTheMost) {
  EngineDouble engine;
  const auto write = [&](int bad) {
    std::ofstream lines(at("lines.jsonl"));
    for (int i = 1; i <= 100; ++i) {
      lines << (i > 100 - bad ? "nonsense" : R"({"prompt": "a)" + std::to_string(i) + "\"}") << '\n';
    }
  };
  write(5);
  const Ended allowed = run(arguments(engine.url(), at("lines.jsonl")));
  EXPECT_EQ(allowed.exit, 0) << allowed.err;
  EXPECT_NE(allowed.err.find("5 of 100 lines are bad and left out; the first, line 96: is not JSON"),
            std::string::npos)
      << allowed.err;
  EXPECT_EQ(engine.completions(), 95U);
  write(6);
  const Ended refused = run(arguments(engine.url(), at("lines.jsonl")));
  EXPECT_EQ(refused.exit, 65) << refused.err;
  EXPECT_NE(refused.err.find("6 of 100 lines are bad, more than 5 %; line 95: is not JSON"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(engine.completions(), 95U) << "the engine is not asked";
}

TEST_F(Collect, FivePercentOfRefusedPromptsAreTheMost) {
  for (const auto& [refused, exit] : {std::pair<std::size_t, int>{3, 0}, {4, 65}}) {
    EngineDouble engine("test-moe", [refused = refused](std::size_t number, const http::Request&,
                                                        http::ResponseWriter& answer) {
      if (number <= refused) {
        answer.respond(400, "application/json", R"({"error":{"message":"too long"}})");
      }
      return number <= refused;
    });
    const Ended ended = run(arguments(engine.url(), at("prompts.jsonl"), {"--concurrency", "1"}));
    EXPECT_EQ(ended.exit, exit) << ended.err;
    EXPECT_NE(ended.err.find("data set line 1: engine answered 400: too long; left out"), std::string::npos)
        << ended.err;
  }
}

/// Plain int32 without a shape, under meta_info, as SGLang sends it.
bool answer_as_sglang(const http::Request& request, http::ResponseWriter& answer) {
  const json body = json::parse(request.body);
  const std::string text = body["prompt"].get<std::string>();
  const std::size_t generated = body["max_tokens"].get<std::size_t>();
  const std::size_t rows = text.size() + generated - 1;
  std::string bytes;
  for (const std::uint16_t id : EngineDouble::ids_of(text, rows)) {
    bytes += std::string{static_cast<char>(id), '\0', '\0', '\0'};
  }
  answer.respond(200, "application/json",
                 json({{"choices", {{{"text", "x"}}}},
                       {"meta_info", {{"routed_experts", base64_encode(as_bytes(bytes))}}},
                       {"usage", {{"prompt_tokens", text.size()}, {"completion_tokens", generated}}}})
                     .dump());
  return true;
}

TEST_F(Collect, SglangGivesTheSameTraceAsVllm) {
  EngineDouble vllm;
  ASSERT_EQ(run(arguments(vllm.url(), at("prompts.jsonl"))).exit, 0);
  const std::string expected = Child::read(at("t.safetensors"));
  EngineDouble sglang("test-moe",
                      [](std::size_t, const http::Request& request, http::ResponseWriter& answer) {
                        return answer_as_sglang(request, answer);
                      });
  const Ended unknown = run(arguments(sglang.url(), at("prompts.jsonl")));
  EXPECT_EQ(unknown.exit, 78);
  EXPECT_NE(unknown.err.find("--top-k is needed"), std::string::npos) << unknown.err;
  const Ended told = run(arguments(sglang.url(), at("prompts.jsonl"), {"--top-k", "2"}));
  ASSERT_EQ(told.exit, 0) << told.err;
  EXPECT_EQ(Child::read(at("t.safetensors")), expected);
}

TEST_F(Collect, AUrlIsCheckedBeforeTheEngineIsAsked) {
  EngineDouble engine;
  const std::string content = Child::read(at("prompts.jsonl"));
  const auto server = http::Server::listen({}, [&](const http::Request&, http::ResponseWriter& answer) {
    answer.respond(200, "text/plain", content);
  });
  ASSERT_TRUE(server);
  const std::string url = "http://127.0.0.1:" + std::to_string((*server)->port()) + "/prompts.jsonl";
  const Ended wrong =
      run(arguments(engine.url(), "", {"--dataset-url", url, "--dataset-sha256", std::string(64, '0')}));
  EXPECT_EQ(wrong.exit, 65) << wrong.err;
  EXPECT_NE(wrong.err.find("its SHA-256 is " + sha256_hex(content)), std::string::npos) << wrong.err;
  EXPECT_EQ(engine.completions(), 0U);
  const Ended right =
      run(arguments(engine.url(), "", {"--dataset-url", url, "--dataset-sha256", sha256_hex(content)}));
  EXPECT_EQ(right.exit, 0) << right.err;
  EXPECT_EQ(engine.completions(), 60U);
}

TEST_F(Collect, TheShapeIsTheEnginesAndIsChecked) {
  EngineDouble engine;
  ASSERT_EQ(
      run(arguments(engine.url(), at("prompts.jsonl"), {"--experts", "20", "--layer-numbers", "3-5"})).exit,
      0);
  const auto trace = signature::load_trace(at("t.safetensors")).value();
  EXPECT_EQ(trace.layers, (std::vector<std::int32_t>{3, 4, 5}));
  EXPECT_EQ(trace.experts, 20U);
  EXPECT_EQ(trace.top_k, EngineDouble::kTopK);
  std::filesystem::remove(at("t.safetensors"));

  for (const auto& [option, value, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--experts", "8", "--experts 8: the engine used expert"},
           {"--layer-numbers", "1-7", "7 numbers; the engine sends 3 layers"}}) {
    const Ended ended = run(arguments(engine.url(), at("prompts.jsonl"), {option, value}));
    EXPECT_EQ(ended.exit, 78) << ended.err;
    EXPECT_NE(ended.err.find(says), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(at("t.safetensors")));
  }

  EngineDouble moody("test-moe", [](std::size_t number, const http::Request& request,
                                    http::ResponseWriter& answer) {
    if (number != 20) {
      return false;
    }
    const std::size_t prompt = json::parse(request.body)["prompt"].get<std::string>().size();
    const std::string file = testing::npy("|u1", {prompt, 4, 2}, std::vector<std::uint16_t>(prompt * 8, 1));
    answer.respond(200, "application/json",
                   json({{"choices", {{{"routed_experts", base64_encode(as_bytes(file))}}}},
                         {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", 1}}}})
                       .dump());
    return true;
  });
  std::filesystem::remove(at("t.safetensors.partial"));
  const Ended ended = run(arguments(moody.url(), at("prompts.jsonl")));
  EXPECT_EQ(ended.exit, 78) << ended.err;
  EXPECT_NE(ended.err.find("answers of different shapes"), std::string::npos) << ended.err;
}

TEST_F(Collect, ABrokenResumeFileIsUsedAsFarAsItGoes) {
  EngineDouble engine;
  ASSERT_EQ(run(arguments(engine.url(), at("prompts.jsonl"), {"--concurrency", "1"})).exit, 0);
  const std::string expected = Child::read(at("t.safetensors"));
  // A partial file of 20 requests: made by an engine that then goes away.
  EngineDouble dying("test-moe", [](std::size_t number, const http::Request&, http::ResponseWriter& answer) {
    if (number > 20) {
      answer.respond(404, "application/json", "{}");
    }
    return number > 20;
  });
  const auto stopped = [&] {
    std::filesystem::remove(at("t.safetensors.partial"));
    EXPECT_EQ(run(arguments(dying.url(), at("prompts.jsonl"), {"--concurrency", "1"})).exit, 78);
    return Child::read(at("t.safetensors.partial"));
  };
  const std::string good = stopped();
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < good.size();) {
    const std::size_t end = good.find('\n', begin);
    lines.push_back(good.substr(begin, end - begin));
    begin = end + 1;
  }
  ASSERT_EQ(lines.size(), 21U);
  const auto edited = [&](const std::string& key, const json& value) {
    json record = json::parse(lines[10]);
    record[key] = value;
    return record.dump();
  };
  struct Row {
    std::string what;
    std::string tenth;  ///< instead of the tenth request's line
  };
  for (const Row& row : std::vector<Row>{{"nonsense", "nonsense"},
                                         {"an empty line", ""},
                                         {"a request that is not there", edited("i", 60)},
                                         {"a negative number", edited("p", -4)},
                                         {"huge layers", edited("l", 1ULL << 40U)},
                                         {"another width", edited("w", 5)},
                                         {"other tokens than counts", edited("p", 7)},
                                         {"no base64", edited("prefill", "%%%")},
                                         {"short counts", edited("decode", "AAAA")}}) {
    std::ofstream file(at("t.safetensors.partial"), std::ios::trunc);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      file << (i == 10 ? row.tenth : lines[i]) << '\n';
    }
    file.close();
    std::filesystem::remove(at("t.safetensors"));
    const std::size_t before = engine.completions();
    const Ended ended = run(arguments(engine.url(), at("prompts.jsonl"), {"--concurrency", "1"}));
    EXPECT_EQ(ended.exit, 0) << row.what << ended.err;
    EXPECT_EQ(engine.completions() - before, 60U - 9U) << row.what << ": the first nine are good";
    EXPECT_EQ(Child::read(at("t.safetensors")), expected) << row.what;
  }
}

TEST_F(Collect, WrongAnswersOfAnEngineEndWithTheirReason) {
  struct Row {
    std::string what;
    std::string routed;  ///< bytes, before base64
    int exit;
    std::string says;
  };
  const std::vector<std::uint16_t> ids(24, 1);
  const std::string good = testing::npy("|u1", {4, 3, 2}, ids);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bytes = good;
    bytes.replace(bytes.find(from), from.size(), to);
    return bytes;
  };
  for (const Row& row : std::vector<Row>{
           {"truncated", good.substr(0, good.size() - 1), 78, "23 bytes of data; shape (4, 3, 2) needs 24"},
           {"oversized", good + "x", 78, "25 bytes of data"},
           {"wrong dtype", with("'|u1'", "'<f4'"), 78, "descr must be |u1 or <u2"},
           {"another order", with("False", "True "), 78, "fortran_order"},
           {"huge shape", with("(4, 3, 2, ), }       ", "(4, 3, 16000000, ), }"), 78, "needs 192000000"},
           {"negative shape", with("(4, 3", "(4,-3"), 78, "npy header: has a value that is not understood"},
           {"two dimensions", with("(4, 3, 2, )", "(4, 6,    )"), 78, "2 dimensions"},
           {"key twice", with("'fortran_order'", "'descr'        "), 78, "there twice"},
           {"huge header", with(std::string("\x76\0", 2), "\xFF\xFF"), 78, "npy header"},
           {"an id that is none", testing::npy("<u2", {4, 3, 2}, std::vector<std::uint16_t>(24, 5000)), 78,
            "expert id 5000"},
           {"other rows than tokens", testing::npy("|u1", {9, 3, 2}, std::vector<std::uint16_t>(54, 1)), 78,
            "9 rows"},
       }) {
    EngineDouble engine("test-moe", [&](std::size_t, const http::Request&, http::ResponseWriter& answer) {
      answer.respond(200, "application/json",
                     json({{"choices", {{{"routed_experts", base64_encode(as_bytes(row.routed))}}}},
                           {"usage", {{"prompt_tokens", 3}, {"completion_tokens", 2}}}})
                         .dump());
      return true;
    });
    const Ended ended = run(arguments(engine.url(), at("prompts.jsonl"), {"--concurrency", "1"}));
    EXPECT_EQ(ended.exit, row.exit) << row.what << ended.err;
    EXPECT_NE(ended.err.find(row.says), std::string::npos) << row.what << ended.err;
    EXPECT_EQ(engine.completions(), 1U) << row.what << ": no other request would do better";
    EXPECT_FALSE(std::filesystem::exists(at("t.safetensors")));
  }
  // What is no completion may pass: the engine is tried again, then given up.
  for (const std::string& body :
       {std::string("nonsense"), std::string("[]"), std::string(200'000, '['),
        std::string(R"({"choices":[]})"),
        std::string(R"({"choices":[{}],"usage":{"prompt_tokens":-3,"completion_tokens":2}})"),
        std::string(R"({"choices":[{}],"usage":{"prompt_tokens":1e300,"completion_tokens":2}})")}) {
    EngineDouble engine("test-moe", [&](std::size_t, const http::Request&, http::ResponseWriter& answer) {
      answer.respond(200, "application/json", body);
      return true;
    });
    const Ended ended = run(arguments(engine.url(), at("prompts.jsonl"), {"--concurrency", "1"}));
    EXPECT_EQ(ended.exit, 69) << body.substr(0, 80) << ended.err;
    EXPECT_NE(ended.err.find("not a completion"), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace eldr::calibrator

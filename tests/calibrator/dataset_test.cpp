// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "calibrator/collect/curl_transport.h"
#include "calibrator/dataset/sampler.h"
#include "calibrator/dataset/source.h"
#include "lib/base/digest.h"
#include "lib/http/server.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

class TempFile {
 public:
  explicit TempFile(const std::string& content) {
    static int count = 0;
    path_ = ::testing::TempDir() + "/eldr-data-" + std::to_string(getpid()) + "-" + std::to_string(count++);
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Prompt, AcceptsEveryForm) {
  struct Row {
    std::string line;
    PromptKind kind;
    json body;
    std::string label;
  };
  const std::vector<Row> rows = {
      {R"({"prompt": "hi"})", PromptKind::kCompletion, {{"prompt", "hi"}}, ""},
      {R"({"prompt": "hi", "label": "code"})", PromptKind::kCompletion, {{"prompt", "hi"}}, "code"},
      {R"({"prompt": [1, 2, 3], "label": 7})", PromptKind::kCompletion, {{"prompt", {1, 2, 3}}}, "7"},
      {R"({"prompt": "hi", "label": null})", PromptKind::kCompletion, {{"prompt", "hi"}}, ""},
      {R"({"messages": [{"role": "user", "content": "hi"}]})",
       PromptKind::kChat,
       {{"messages", {{{"role", "user"}, {"content", "hi"}}}}},
       ""},
      {R"({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "stream": true, "n": 3,
           "temperature": 0.5, "stop": ["x"], "kv_transfer_params": {}, "label": "l"})",
       PromptKind::kChat,
       {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"temperature", 0.5}},
       "l"},
      {R"({"custom_id": "1", "method": "POST", "url": "/v1/completions", "body": {"model": "m", "prompt": "hi"}, "label": "b"})",
       PromptKind::kCompletion,
       {{"prompt", "hi"}},
       "b"},
  };
  for (const Row& row : rows) {
    const auto prompt = parse_prompt(row.line, 3);
    ASSERT_TRUE(prompt) << row.line << prompt.error().message;
    EXPECT_EQ(prompt->kind, row.kind) << row.line;
    EXPECT_EQ(json::parse(prompt->body), row.body) << row.line;
    EXPECT_EQ(prompt->label, row.label) << row.line;
    EXPECT_EQ(prompt->line, 3U);
  }
}

TEST(Prompt, RefusesWithAReason) {
  for (const auto& [line, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "not JSON"},
           {"{", "not JSON"},
           {R"({"prompt": "a"} x)", "not JSON"},
           {"{\"prompt\": \"\xFF\"}", "not JSON (or not UTF-8)"},
           {std::string("{\"prompt\": \"a\"}\0x", 16), "not JSON"},
           {"[1]", "must be an object"},
           {"{}", "neither"},
           {R"({"prompt": "a", "messages": []})", "both"},
           {R"({"prompt": ""})", "prompt: is empty"},
           {R"({"prompt": 5})", "prompt: is number"},
           {R"({"prompt": []})", "prompt: is another list"},
           {R"({"prompt": ["a", "b"]})", "prompt: is another list"},
           {R"({"prompt": [-1]})", "prompt: is another list"},
           {R"({"messages": []})", "messages"},
           {R"({"messages": "hi"})", "messages"},
           {R"({"messages": [{"content": "hi"}]})", "role"},
           {R"({"prompt": "a", "label": {}})", "label"},
           {R"({"prompt": "a", "label": ")" + std::string(300, 'x') + R"("})", "label"},
           {std::string(70, '[') + std::string(70, ']'), "deeper than 64"},
       }) {
    const auto prompt = parse_prompt(line, 1);
    ASSERT_FALSE(prompt) << line;
    EXPECT_NE(prompt.error().message.find(part), std::string::npos) << line << ": " << prompt.error().message;
  }
}

TEST(Prompt, BracketsInTextDoNotNest) {
  EXPECT_TRUE(parse_prompt(json({{"prompt", std::string(500, '[') + "\\\""}}).dump(), 1));
}

std::string lines(std::size_t count, const std::string& label, std::size_t from = 0) {
  std::string text;
  for (std::size_t i = from; i < from + count; ++i) {
    text += json({{"prompt", label + std::to_string(i)}, {"label", label}}).dump() + "\n";
  }
  return text;
}

std::map<std::string, int> labels_of(const Sample& sample) {
  std::map<std::string, int> counts;
  for (const Prompt& prompt : sample.prompts) {
    ++counts[prompt.label];
  }
  return counts;
}

TEST(Sampler, IsStratifiedSeededAndInOrder) {
  const TempFile file(lines(600, "a") + lines(300, "b") + lines(100, "c"));
  const auto sample = draw_sample(file.path(), 50, 1, {});
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(labels_of(*sample), (std::map<std::string, int>{{"a", 30}, {"b", 15}, {"c", 5}}));
  EXPECT_TRUE(std::is_sorted(sample->prompts.begin(), sample->prompts.end(),
                             [](const Prompt& x, const Prompt& y) { return x.line < y.line; }));
  const auto line_numbers = [](const Sample& s) {
    std::vector<std::uint64_t> numbers;
    for (const Prompt& prompt : s.prompts) {
      numbers.push_back(prompt.line);
    }
    return numbers;
  };
  EXPECT_EQ(line_numbers(*draw_sample(file.path(), 50, 1, {})), line_numbers(*sample));
  EXPECT_NE(line_numbers(*draw_sample(file.path(), 50, 2, {})), line_numbers(*sample));
}

TEST(Sampler, EachLineIsAsLikelyAsAnother) {
  const TempFile file(lines(20, "a"));
  std::map<std::uint64_t, int> drawn;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const auto sample = draw_sample(file.path(), 5, seed, {}).value();
    for (const Prompt& prompt : sample.prompts) {
      ++drawn[prompt.line];
    }
  }
  for (std::uint64_t line = 1; line <= 20; ++line) {
    EXPECT_NEAR(drawn[line], 250, 60) << line;  // over four standard deviations
  }
}

TEST(Sampler, TakesAllWhenThereAreFewer) {
  const TempFile file(lines(7, "a"));
  EXPECT_EQ(draw_sample(file.path(), 100, 0, {})->prompts.size(), 7U);
}

TEST(Sampler, EveryLabelHasItsShareWithinOne) {
  std::mt19937_64 engine(3);
  for (int round = 0; round < 200; ++round) {
    std::map<std::string, std::uint64_t> available;
    std::uint64_t all = 0;
    for (std::uint64_t label = 0; label <= engine() % 12; ++label) {
      all += available["label " + std::to_string(label)] = 1 + engine() % 5000;
    }
    const std::uint64_t size = 1 + engine() % all;
    std::uint64_t given = 0;
    for (const auto& [label, quota] : quotas_of(available, size)) {
      const double share =
          static_cast<double>(size) * static_cast<double>(available[label]) / static_cast<double>(all);
      EXPECT_LT(std::abs(static_cast<double>(quota) - share), 1) << label;
      EXPECT_LE(quota, available[label]);
      given += quota;
    }
    EXPECT_EQ(given, size);
  }
}

TEST(Sampler, QuotasAddUp) {
  EXPECT_EQ(quotas_of({{"a", 1}, {"b", 1}, {"c", 1}}, 2),
            (std::map<std::string, std::uint64_t>{{"a", 1}, {"b", 1}, {"c", 0}}));
  EXPECT_EQ(quotas_of({{"a", 999}, {"b", 1}}, 100),
            (std::map<std::string, std::uint64_t>{{"a", 100}, {"b", 0}}));
  EXPECT_EQ(quotas_of({{"a", 5}}, 100), (std::map<std::string, std::uint64_t>{{"a", 5}}));
}

TEST(Sampler, AFewBadLinesAreLeftOutAndTooManyNamed) {
  const TempFile few(lines(50, "a") + "nonsense\n\n  \n" + lines(10, "a", 50));
  const auto sample = draw_sample(few.path(), 1000, 0, {});
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->prompts.size(), 60U);
  EXPECT_EQ(sample->bad_lines, 1U);
  EXPECT_EQ(sample->lines, 61U);  // blank lines count as nothing
  EXPECT_EQ(sample->first_bad.at(0).number, 51U);

  const TempFile many(lines(3, "a") + "nonsense\n{}\n" + lines(3, "a"));
  const auto refused = draw_sample(many.path(), 1000, 0, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().message.find("2 of 8 lines are bad, more than 5 %; line 4: is not JSON"),
            std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("line 5: has neither"), std::string::npos);
}

TEST(Sampler, ReadsWhatEditorsWrite) {
  const TempFile file("\xEF\xBB\xBF{\"prompt\": \"a\"}\r\n{\"prompt\": \"b\"}\r\n{\"prompt\": \"c\"}");
  const auto sample = draw_sample(file.path(), 10, 0, {});
  ASSERT_TRUE(sample) << sample.error().message;
  EXPECT_EQ(sample->prompts.size(), 3U);
}

TEST(Sampler, EmptyMissingAndFolder) {
  const TempFile empty("\n\n");
  EXPECT_NE(draw_sample(empty.path(), 10, 0, {}).error().message.find("has no lines"), std::string::npos);
  EXPECT_EQ(draw_sample("/nowhere/at/all", 10, 0, {}).error().code, Code::kNotFound);
  EXPECT_EQ(draw_sample(::testing::TempDir(), 10, 0, {}).error().code, Code::kNotFound);
}

TEST(Source, FileStandardInputAndUrlGiveTheSame) {
  const std::string content = lines(30, "a");
  const TempFile file(content);
  const auto server =
      http::Server::listen({}, [&](const http::Request& request, http::ResponseWriter& answer) {
        if (request.path == "/data.jsonl") {
          answer.respond(200, "text/plain", content);
        } else if (request.path == "/moved") {
          answer.respond(302, "text/plain", "", {{"Location", "/data.jsonl"}});
        } else {
          answer.respond(request.path == "/broken" ? 500 : 404, "text/plain", "no");
        }
      });
  ASSERT_TRUE(server);
  const std::string base = "http://127.0.0.1:" + std::to_string((*server)->port());
  const auto read = [](const LocalDataset& dataset) {
    std::ifstream in(dataset.path());
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  DatasetSource source;
  source.temp_directory = ::testing::TempDir();
  source.expected_sha256 = sha256_hex(content);
  const auto obtain = [&] { return obtain_dataset(source, make_curl_download(), {}); };

  source.file = file.path();
  EXPECT_EQ(read(*obtain()), content);
  source.file = "-";
  source.input = std::fopen(file.path().c_str(), "rb");
  EXPECT_EQ(read(*obtain()), content);
  std::fclose(source.input);
  source.file.clear();
  for (const char* path : {"/data.jsonl", "/moved"}) {
    source.url = base + path;
    std::string copy;
    {
      const auto dataset = obtain();
      ASSERT_TRUE(dataset) << dataset.error().message;
      EXPECT_EQ(read(*dataset), content);
      copy = dataset->path();
    }
    EXPECT_FALSE(std::filesystem::exists(copy)) << "the copy is removed";
  }

  source.url = base + "/absent";
  EXPECT_EQ(obtain().error().code, Code::kNotFound);
  source.url = base + "/broken";
  EXPECT_EQ(obtain().error().code, Code::kUnavailable);
  source.url = "file://" + file.path();
  EXPECT_EQ(obtain().error().code, Code::kInvalid);
  source.url = base + "/data.jsonl";
  source.max_bytes = 10;
  EXPECT_EQ(obtain().error().code, Code::kInvalid);
  source.max_bytes = 1000000;
  source.expected_sha256 = std::string(64, '0');
  const auto other = obtain();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kInvalid);
  EXPECT_NE(other.error().message.find(sha256_hex(content)), std::string::npos);
}

}  // namespace
}  // namespace eldr::calibrator

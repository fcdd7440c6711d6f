// SPDX-License-Identifier: Apache-2.0
// Runs eldr-calibrate itself: exit codes, what it prints, signals, and no half files.
#include "tests/calibrator/program.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"
#include "tests/calibrator/engine_double.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;
using testing::Child;
using testing::Ended;
using testing::EngineDouble;
using testing::Program;

TEST_F(Program, HelpAndVersion) {
  const Ended version = run({"--version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_EQ(version.out.rfind("eldr-calibrate ", 0), 0U);
  for (const char* command : {"collect", "fit", "run", "report", "inspect"}) {
    const Ended help = run({command, "--help"});
    EXPECT_EQ(help.exit, 0) << command;
    EXPECT_FALSE(help.out.empty());
  }
}

TEST_F(Program, ExitCodes) {
  std::ofstream(at("broken.safetensors")) << "not a trace";
  std::ofstream(at("bad.jsonl")) << "nonsense\nnonsense\n";
  struct Row {
    std::vector<std::string> arguments;
    int exit;
    std::string says;
  };
  const std::string trace = at("trace.safetensors");
  const std::string out = at("c.safetensors");
  const std::vector<Row> rows = {
      {{}, 64, "subcommand"},
      {{"dance"}, 64, ""},
      {{"fit"}, 64, "--trace"},
      {{"fit", "--trace", trace, "--out", out, "--clusters", "zero"}, 64, "--clusters"},
      {{"fit", "--trace", trace, "--out", out, "--clusters", "2", "--transform", "cube"}, 64, "--transform"},
      {{"fit", "--trace", at("none"), "--out", out, "--clusters", "2"}, 66, "none"},
      {{"fit", "--trace", at("broken.safetensors"), "--out", out, "--clusters", "2"},
       65,
       "broken.safetensors"},
      {{"fit", "--trace", trace, "--out", out, "--clusters", "61"}, 65, "number of requests, 60"},
      {{"fit", "--trace", trace, "--out", out, "--clusters", "2", "--ep-ranks", "5"}, 65, "must divide"},
      {{"fit", "--trace", trace, "--out", out, "--clusters", "2", "--backend", "cuda", "--cuda-library",
        at("none.so")},
       78,
       "none.so"},
      {{"--config", at("none.toml"), "fit", "--trace", trace, "--out", out, "--clusters", "2"},
       66,
       "none.toml"},
      {{"inspect", at("none")}, 66, "none"},
      {{"inspect", at("broken.safetensors")}, 65, "broken"},
      {{"run", "--trace", trace, "--clusters", "2"}, 64, "--publish-configmap"},
      {{"run", "--clusters", "2", "--out", out}, 64, "--engine"},
      {{"run", "--clusters", "2", "--out", out, "--from-cache"}, 64, "--cache-dir"},
      {{"run", "--clusters", "2", "--out", out, "--from-cache", "--cache-dir", folder_, "--collect-hash",
        "abc"},
       66,
       "abc.safetensors"},
      {{"run", "--trace", trace, "--model", "another", "--clusters", "2", "--out", out}, 65, "test-moe"},
      {{"run", "--trace", trace, "--clusters", "2", "--publish-configmap", "c", "--kubeconfig", at("none")},
       78,
       "none"},
      {{"collect", "--model", "m", "--engine", "http://127.0.0.1:1", "--dataset", at("none.jsonl"), "--out",
        out},
       66,
       "none.jsonl"},
      {{"collect", "--model", "m", "--engine", "http://127.0.0.1:1", "--dataset", at("bad.jsonl"), "--out",
        out},
       65,
       "line 1: is not JSON"},
      {{"collect", "--model", "m", "--engine", "http://127.0.0.1:1", "--dataset", at("prompts.jsonl"),
        "--out", out, "--engine-wait", "1"},
       69,
       "not healthy after 1 s"},
      {{"collect", "--model", "m", "--engine", "ftp://host", "--dataset", at("prompts.jsonl"), "--out", out},
       78,
       "ftp://host"},
      {{"collect", "--model", "m", "--engine", "http://127.0.0.1:1", "--dataset", at("prompts.jsonl"),
        "--dataset-sha256", "12", "--out", out},
       64,
       "64 hex digits"},
  };
  for (const Row& row : rows) {
    const Ended ended = run(row.arguments);
    std::string line = "eldr-calibrate";
    for (const std::string& argument : row.arguments) {
      line += " " + argument;
    }
    EXPECT_EQ(ended.exit, row.exit) << line << "\n" << ended.err;
    EXPECT_NE(ended.err.find(row.says), std::string::npos) << line << "\n" << ended.err;
    EXPECT_FALSE(std::filesystem::exists(out)) << line;
  }
}

TEST_F(Program, TheReasonOfAFailureIsInTheTerminationLog) {
  const Ended ended = run({"fit", "--trace", at("none"), "--out", at("c"), "--clusters", "2",
                           "--termination-log", at("reason"), "--log-format", "json"});
  EXPECT_EQ(ended.exit, 66);
  const std::string reason = Child::read(at("reason"));
  EXPECT_NE(reason.find(at("none")), std::string::npos);
  EXPECT_EQ(json::parse(ended.err)["msg"], reason);
}

TEST_F(Program, FitWritesAFileThatInspectReads) {
  const std::string out = at("c.safetensors");
  const Ended fit =
      run({"fit", "--trace", at("trace.safetensors"), "--clusters", "3", "--out", out, "--json"});
  ASSERT_EQ(fit.exit, 0) << fit.err;
  const json report = json::parse(fit.out);
  const auto set = signature::load_centroids(out);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ(set->clusters(), 3U);
  EXPECT_EQ(report["clusters"], 3);
  EXPECT_EQ(report["layerRhos"].size(), 5U);
  const Ended inspect = run({"inspect", out, "--json"});
  ASSERT_EQ(inspect.exit, 0) << inspect.err;
  EXPECT_EQ(json::parse(inspect.out)["rho"], report["rho"]);
  const Ended text = run({"inspect", at("trace.safetensors")});
  EXPECT_NE(text.out.find("test-moe"), std::string::npos);
}

TEST_F(Program, FitWritesThePlacementOfAllLayers) {
  const std::string out = at("c.safetensors");
  const std::string plan = at("placement.json");
  const Ended fit = run({"fit", "--trace", at("trace.safetensors"), "--clusters", "3", "--out", out,
                         "--ep-ranks", "4", "--placement-out", plan, "--json"});
  ASSERT_EQ(fit.exit, 0) << fit.err;
  const json report = json::parse(fit.out);
  EXPECT_LE(report["expertPlacement"]["fullestRank"], report["expertPlacement"]["identity"]);
  const json placement = json::parse(Child::read(plan));
  EXPECT_EQ(placement["format"], "eldr-placement/1");
  EXPECT_EQ(placement["layers"].size(), 5U);
  ASSERT_EQ(placement["clusters"].size(), 3U);
  const auto set = signature::load_centroids(out).value();
  for (std::size_t cluster = 0; cluster < 3; ++cluster) {
    const json& maps = placement["clusters"][cluster]["physicalToLogical"];
    ASSERT_EQ(maps.size(), 5U);
    for (const json& map : maps) {
      const auto experts = map.get<std::set<std::size_t>>();
      EXPECT_EQ(experts.size(), 16U) << "each expert has one slot";
      EXPECT_EQ(*experts.rbegin(), 15U);
    }
    // The kept layers are the centroid file's.
    for (std::size_t s = 0; s < set.spec.layers.size(); ++s) {
      const json& map = maps[static_cast<std::size_t>(set.spec.layers[s] - 1)];
      for (std::size_t slot = 0; slot < 16; ++slot) {
        const std::size_t expert = map[slot];
        EXPECT_EQ(set.placement[(cluster * set.spec.layers.size() + s) * 16 + expert], slot / 4);
      }
    }
  }
  const Ended refused = run(
      {"fit", "--trace", at("trace.safetensors"), "--clusters", "3", "--out", out, "--placement-out", plan});
  EXPECT_EQ(refused.exit, 64);
  EXPECT_NE(refused.err.find("--ep-ranks"), std::string::npos);
}

TEST_F(Program, FitsForSeveralNumbersOfClustersInOneRun) {
  const Ended fit = run({"fit", "--trace", at("trace.safetensors"), "--clusters", "2-3,6", "--out",
                         at("of-{clusters}.safetensors"), "--json"});
  ASSERT_EQ(fit.exit, 0) << fit.err;
  const json reports = json::parse(fit.out);
  ASSERT_EQ(reports.size(), 3U);
  for (const std::uint32_t clusters : {2U, 3U, 6U}) {
    const auto set = signature::load_centroids(at("of-" + std::to_string(clusters) + ".safetensors"));
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(set->clusters(), clusters);
  }
  EXPECT_EQ(reports[2]["clusters"], 6);
  const Ended table = run({"fit", "--trace", at("trace.safetensors"), "--clusters", "2,3", "--out",
                           at("of-{clusters}.safetensors")});
  EXPECT_NE(table.out.find("mean distance"), std::string::npos) << table.out;
  EXPECT_EQ(std::count(table.out.begin(), table.out.end(), '\n'), 3);
}

TEST_F(Program, ANewFitKeepsTheNumbersOfAnOlderFile) {
  const auto fit = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"fit", "--trace", at("trace.safetensors"), "--clusters", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  };
  ASSERT_EQ(fit({"--out", at("old"), "--seed", "1"}).exit, 0);
  ASSERT_EQ(fit({"--out", at("new"), "--seed", "9", "--match", at("old")}).exit, 0);
  const auto before = signature::load_centroids(at("old")).value();
  const auto now = signature::load_centroids(at("new")).value();
  for (Eigen::Index k = 0; k < 3; ++k) {
    Eigen::Index nearest = -1;
    (before.centroids * now.centroids.row(k).transpose()).maxCoeff(&nearest);
    EXPECT_EQ(nearest, k);
  }
  const Ended none = fit({"--out", at("x"), "--match", at("none")});
  EXPECT_EQ(none.exit, 66);
  EXPECT_NE(none.err.find("--match"), std::string::npos) << none.err;
  const Ended foreign = fit({"--out", at("x"), "--match", at("trace.safetensors")});
  EXPECT_EQ(foreign.exit, 65);
  EXPECT_FALSE(std::filesystem::exists(at("x")));
}

TEST_F(Program, AConfigFileGivesOptions) {
  std::ofstream(at("options.toml")) << "[fit]\nclusters = 4\nseed = 9\n";
  const Ended fit = run({"--config", at("options.toml"), "fit", "--trace", at("trace.safetensors"), "--out",
                         at("c.safetensors"), "--json"});
  ASSERT_EQ(fit.exit, 0) << fit.err;
  EXPECT_EQ(json::parse(fit.out)["clusters"], 4);
  EXPECT_EQ(json::parse(fit.out)["seed"], 9);
}

TEST_F(Program, CollectsFitsAndReusesTheCache) {
  EngineDouble engine;
  const std::vector<std::string> inputs = {"run",
                                           "--model",
                                           "test-moe",
                                           "--clusters",
                                           "3",
                                           "--sample-size",
                                           "45",
                                           "--decode-tokens",
                                           "20",
                                           "--cache-dir",
                                           folder_,
                                           "--collect-hash",
                                           "c0ffee",
                                           "--out",
                                           at("c.safetensors"),
                                           "--json"};
  auto collecting = inputs;
  collecting.insert(collecting.end(), {"--engine", engine.url(), "--dataset", at("prompts.jsonl")});
  const Ended first = run(collecting);
  ASSERT_EQ(first.exit, 0) << first.err;
  EXPECT_EQ(engine.completions(), 45U);
  const auto trace = signature::load_trace(at("c0ffee.safetensors"));
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->requests(), 45U);
  EXPECT_EQ(trace->labels.size(), 45U);
  EXPECT_EQ(trace->decode_tokens.front(), 19U);
  EXPECT_EQ(left_behind(), (std::set<std::string>{"c.safetensors", "c0ffee.safetensors"}));

  const std::string bytes = Child::read(at("c.safetensors"));
  const Ended again = run(collecting);
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(engine.completions(), 45U) << "nothing is collected twice";
  EXPECT_EQ(Child::read(at("c.safetensors")), bytes);

  engine.stop();
  auto from_cache = inputs;
  from_cache.emplace_back("--from-cache");
  EXPECT_EQ(run(from_cache).exit, 0);
}

TEST_F(Program, CollectReadsStandardInput) {
  EngineDouble engine;
  const Ended ended = run({"collect", "--model", "test-moe", "--engine", engine.url(), "--dataset", "-",
                           "--out", at("t.safetensors"), "--json"},
                          {.input = at("prompts.jsonl")});
  ASSERT_EQ(ended.exit, 0) << ended.err;
  EXPECT_EQ(json::parse(ended.out)["requests"], 60);
}

TEST_F(Program, AWrongModelAndADyingEngine) {
  EngineDouble other("something-else");
  const auto collect = [&](const std::string& url) {
    return run({"collect", "--model", "test-moe", "--engine", url, "--dataset", at("prompts.jsonl"), "--out",
                at("t.safetensors"), "--retries", "1", "--concurrency", "2"});
  };
  const Ended wrong = collect(other.url());
  EXPECT_EQ(wrong.exit, 78);
  EXPECT_NE(wrong.err.find("it serves \"something-else\""), std::string::npos) << wrong.err;

  EngineDouble dying("test-moe", [](std::size_t number, const http::Request&, http::ResponseWriter& answer) {
    if (number > 10) {
      answer.abort();
    }
    return number > 10;
  });
  const Ended died = collect(dying.url());
  EXPECT_EQ(died.exit, 69) << died.err;
  EXPECT_FALSE(std::filesystem::exists(at("t.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(at("t.safetensors.partial")));

  EngineDouble healthy;
  const Ended resumed = collect(healthy.url());
  EXPECT_EQ(resumed.exit, 0) << resumed.err;
  EXPECT_LE(healthy.completions(), 51U) << "finished requests are not repeated";
  EXPECT_FALSE(std::filesystem::exists(at("t.safetensors.partial")));
}

TEST_F(Program, NoPromptReachesTheLog) {
  EngineDouble engine("test-moe", [](std::size_t, const http::Request&, http::ResponseWriter& answer) {
    answer.respond(400, "application/json", R"({"error":{"message":"cannot take 'a prompt number 0'"}})");
    return true;
  });
  const Ended ended = run({"collect", "--model", "test-moe", "--engine", engine.url(), "--dataset",
                           at("prompts.jsonl"), "--out", at("t.safetensors"), "--log-level", "trace"});
  EXPECT_EQ(ended.exit, 65);
  EXPECT_EQ(ended.err.find("prompt number"), std::string::npos) << ended.err;
}

TEST_F(Program, SigtermStopsCleanly) {
  EngineDouble engine("test-moe", [](std::size_t number, const http::Request&, http::ResponseWriter& answer) {
    while (number > 5 && !answer.client_gone()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return number > 5;
  });
  const Child child(folder_, {"collect", "--model", "test-moe", "--engine", engine.url(), "--dataset",
                              at("prompts.jsonl"), "--out", at("t.safetensors")});
  for (int i = 0; i < 500 && engine.completions() < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto start = std::chrono::steady_clock::now();
  child.signal(SIGTERM);
  const Ended ended = child.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(ended.exit, 75) << ended.err;
  EXPECT_NE(ended.err.find("stopped"), std::string::npos);
  EXPECT_EQ(left_behind(), std::set<std::string>{"t.safetensors.partial"});
}

}  // namespace
}  // namespace eldr::calibrator

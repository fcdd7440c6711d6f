// SPDX-License-Identifier: Apache-2.0
// `eldr-calibrate report`, `fit --report` and `inspect --centroids` as programs.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "lib/signature/trace.h"
#include "tests/calibrator/program.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;
using testing::Child;
using testing::Ended;
using testing::Program;

class Report : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    const Ended fit = run({"fit", "--trace", at("trace.safetensors"), "--clusters", "3", "--out",
                           at("c.safetensors"), "--report", at("fit.html")});
    ASSERT_EQ(fit.exit, 0) << fit.err;
  }
  std::vector<std::string> report(const std::string& trace, const std::string& centroids) const {
    return {"report", "--trace", at(trace), "--centroids", at(centroids), "--out", at("r.html")};
  }
};

TEST_F(Report, TheTwoFilesGiveThePageOfTheFit) {
  const Ended ended = run(report("trace.safetensors", "c.safetensors"));
  ASSERT_EQ(ended.exit, 0) << ended.err;
  EXPECT_NE(ended.out.find("distinct experts a layer and step"), std::string::npos) << ended.out;
  const std::string page = Child::read(at("r.html"));
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_EQ(page, Child::read(at("fit.html")));
  EXPECT_EQ(page.find(folder_), std::string::npos) << "folders are nobody's business";
}

TEST_F(Report, InspectPrintsItsNumbers) {
  const Ended inspected =
      run({"inspect", at("trace.safetensors"), "--centroids", at("c.safetensors"), "--json"});
  ASSERT_EQ(inspected.exit, 0) << inspected.err;
  auto with_json = report("trace.safetensors", "c.safetensors");
  with_json.emplace_back("--json");
  EXPECT_EQ(json::parse(inspected.out), json::parse(run(with_json).out));
  EXPECT_EQ(json::parse(inspected.out)["clusterSizes"]["assigned"], json({20, 20, 20}));

  const json centroids = json::parse(run({"inspect", at("c.safetensors"), "--json"}).out);
  EXPECT_EQ(centroids["layerRhos"].size(), 5U);
  EXPECT_EQ(centroids["layerOrder"].size(), 5U);
  const std::string text = run({"inspect", at("c.safetensors")}).out;
  EXPECT_NE(text.find("rho by layers"), std::string::npos) << text;
}

TEST_F(Report, FilesThatDoNotBelongTogether) {
  ASSERT_TRUE(signature::save_trace(at("other.safetensors"), samples::trace(2, {.requests = 60})));
  ASSERT_TRUE(signature::save_trace(at("fewer.safetensors"), samples::trace(1, {.requests = 50})));
  std::ofstream(at("broken.safetensors")) << "neither";
  struct Row {
    std::string trace;
    std::string centroids;
    int exit;
    std::string says;
  };
  for (const Row& row : std::vector<Row>{
           {"other.safetensors", "c.safetensors", 65, "with the mean of its requests"},
           {"fewer.safetensors", "c.safetensors", 65, "the number of requests is 50 in the trace and 60"},
           {"broken.safetensors", "c.safetensors", 65, "broken.safetensors"},
           {"trace.safetensors", "broken.safetensors", 65, "broken.safetensors"},
           {"trace.safetensors", "trace.safetensors", 65, "eldr-centroids/1"},
           {"none.safetensors", "c.safetensors", 66, "none.safetensors"},
           {"trace.safetensors", "none.safetensors", 66, "none.safetensors"}}) {
    const Ended ended = run(report(row.trace, row.centroids));
    EXPECT_EQ(ended.exit, row.exit) << row.trace << " " << row.centroids << "\n" << ended.err;
    EXPECT_NE(ended.err.find(row.says), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(at("r.html")));
  }
  EXPECT_EQ(run({"report", "--trace", at("trace.safetensors"), "--out", at("r.html")}).exit, 64);
}

TEST_F(Report, ADiskThatIsFull) {
  const auto before = left_behind();
  const Ended ended = run(report("trace.safetensors", "c.safetensors"), {.prepare = [] {
                            const rlimit limit{10'000, 10'000};
                            setrlimit(RLIMIT_FSIZE, &limit);
                          }});
  EXPECT_EQ(ended.exit, 75) << ended.err;
  EXPECT_NE(ended.err.find("r.html"), std::string::npos) << ended.err;
  EXPECT_EQ(left_behind(), before);
}

TEST_F(Report, APageForEachNumberOfClusters) {
  const std::vector<std::string> fit = {"fit", "--trace", at("trace.safetensors"), "--clusters",
                                        "2,4", "--out",   at("{clusters}.st"),     "--report"};
  auto one = fit;
  one.push_back(at("all.html"));
  const Ended refused = run(one);
  EXPECT_EQ(refused.exit, 64) << refused.err;
  EXPECT_NE(refused.err.find("--report: must contain {clusters}"), std::string::npos) << refused.err;
  auto each = fit;
  each.push_back(at("{clusters}.html"));
  const Ended ended = run(each);
  EXPECT_EQ(ended.exit, 0) << ended.err;
  EXPECT_NE(Child::read(at("2.html")).find("2 clusters"), std::string::npos);
  EXPECT_NE(Child::read(at("4.html")).find("4 clusters"), std::string::npos);
}

TEST_F(Report, RunWritesItToo) {
  const Ended ended = run({"run", "--trace", at("trace.safetensors"), "--clusters", "3", "--out",
                           at("c.safetensors"), "--report", at("run.html")});
  ASSERT_EQ(ended.exit, 0) << ended.err;
  EXPECT_EQ(Child::read(at("run.html")), Child::read(at("fit.html")));
}

}  // namespace
}  // namespace eldr::calibrator

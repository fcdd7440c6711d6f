// SPDX-License-Identifier: Apache-2.0
#include "router/routing/decision.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "lib/base/digest.h"
#include "tests/signature/samples.h"

namespace eldr::router {
namespace {

using nlohmann::json;

const Clock::Steady kNow = Clock::Steady{} + std::chrono::hours(1);

class DecisionTest : public ::testing::Test {
 protected:
  DecisionTest()
      : set_(signature::samples::centroids(3)),
        registry_(HealthConfig{1, Milliseconds(1000), Milliseconds(1000)}) {
    config_.routing.tau = 0;
    config_.cluster_ids = {10, 11, 12, 13};
    registry_.replace(Role::kDecode,
                      {{"d0", "h", 1, 10}, {"d1", "h", 2, 11}, {"d2", "h", 3, 12}, {"d3", "h", 4, 13}});
    registry_.replace(Role::kPrefill, {{"p0", "h", 5, {}}, {"p1", "h", 6, {}}});
    load();
  }
  void load() {
    const auto bytes = signature::serialize_centroids(set_);
    ASSERT_TRUE(bytes);
    auto routing = make_routing(config_, "text", std::span<const std::byte>(*bytes));
    ASSERT_TRUE(routing) << routing.error().message;
    routing_ = *routing;
  }

  /// Counts whose signature points along a centroid as well as integers allow.
  signature::ExpertCounts counts_like(Eigen::Index row) const {
    const auto& spec = routing_->centroids->spec;
    signature::ExpertCounts counts;
    counts.layers = spec.layers;
    counts.experts = spec.experts;
    counts.tokens = counts.counted = 100;
    for (Eigen::Index i = 0; i < routing_->centroids->centroids.cols(); ++i) {
      const float weight = spec.idf.data()[i];
      const float value = routing_->centroids->centroids(row, i);
      counts.counts.push_back(weight > 1e-6F ? static_cast<std::uint32_t>(10000 * value / weight) : 0);
    }
    return counts;
  }
  static std::string wire(const signature::ExpertCounts& counts) {
    return json{{"v", 1},
                {"experts", counts.experts},
                {"layers", counts.layers},
                {"dtype", "u32"},
                {"counts", signature::encode_wire_counts(counts, true)},
                {"tokens", counts.tokens},
                {"counted", counts.counted}}
        .dump();
  }
  Decision decide(const Signal& signal, std::vector<WorkerPtr> tried = {}) {
    return choose_decode(*routing_, *registry_.snapshot(), signal, tried, kNow, 0);
  }

  Config config_;
  signature::CentroidSet set_;
  WorkerRegistry registry_;
  std::shared_ptr<const Routing> routing_;
};

TEST_F(DecisionTest, CountsLikeACentroidGoToTheWorkerOfItsCluster) {
  for (Eigen::Index row = 0; row < 4; ++row) {
    const auto signal = read_signal(*routing_, wire(counts_like(row)));
    ASSERT_EQ(signal.reason, Reason::kSignature) << signal.problem;
    const auto decision = decide(signal);
    EXPECT_EQ(decision.cluster, 10 + row);
    EXPECT_EQ(decision.worker->id, "d" + std::to_string(row));
    EXPECT_GT(*decision.best, 0.99F);
    EXPECT_EQ(decision.band, 1U);
    EXPECT_EQ(decision.candidates, 4U);
  }
}

TEST_F(DecisionTest, TheLayersOfTheCentroidsAreAskedFor) {
  EXPECT_EQ(json::parse(routing_->wanted_layers), json(set_.spec.layers));
  config_.routing.policy = DecodePolicyName::kJoinShortestQueue;
  load();
  EXPECT_EQ(routing_->wanted_layers, "");
}

TEST_F(DecisionTest, EveryDefectFallsBackWithItsReason) {
  EXPECT_EQ(read_signal(*routing_, std::nullopt).reason, Reason::kNoCounts);
  EXPECT_EQ(read_signal(*routing_, "{\"v\":1}").reason, Reason::kMalformed);
  EXPECT_EQ(read_signal(*routing_, "null").reason, Reason::kMalformed);
  auto counts = counts_like(0);
  counts.counted = 49;
  EXPECT_EQ(read_signal(*routing_, wire(counts)).reason, Reason::kLowCoverage);
  counts.counted = 50;
  EXPECT_EQ(read_signal(*routing_, wire(counts)).reason, Reason::kSignature);
  auto other = counts_like(0);
  other.layers.pop_back();
  other.counts.resize(other.layers.size() * other.experts);
  EXPECT_EQ(read_signal(*routing_, wire(other)).reason, Reason::kOtherShape);
  auto zero = counts_like(0);
  std::fill(zero.counts.begin(), zero.counts.end(), 0U);
  EXPECT_EQ(read_signal(*routing_, wire(zero)).reason, Reason::kNoDirection);
  config_.routing.policy = DecodePolicyName::kRandom;
  load();
  EXPECT_EQ(read_signal(*routing_, wire(counts_like(0))).reason, Reason::kPolicy);
  config_.routing.policy = DecodePolicyName::kLocalityBand;
  config_.cluster_ids.clear();
  routing_ = *make_routing(config_, "text", std::nullopt);
  EXPECT_EQ(read_signal(*routing_, wire(counts)).reason, Reason::kNoCentroids);
}

TEST_F(DecisionTest, WithoutASignalLoadDecides) {
  const auto workers = registry_.snapshot();
  for (const auto& worker : workers->decode)
    if (worker->id != "d2") worker->load.began();
  EXPECT_EQ(decide(Signal{}).worker->id, "d2");
  EXPECT_FALSE(decide(Signal{}).similarity);
}

TEST_F(DecisionTest, AWorkerOfAnUnknownClusterIsChosenByLoad) {
  registry_.replace(Role::kDecode, {{"new", "h", 9, {}}, {"d0", "h", 1, 10}, {"old", "h", 7, 99}});
  const auto set = registry_.snapshot();
  for (const auto& worker : set->decode)
    if (worker->id != "new") worker->load.began();
  const auto decision = decide(read_signal(*routing_, wire(counts_like(0))));
  EXPECT_EQ(decision.worker->id, "new");
}

TEST_F(DecisionTest, TriedAndEjectedWorkersAreLeftOut) {
  const auto workers = registry_.snapshot();
  const auto signal = read_signal(*routing_, wire(counts_like(0)));
  EXPECT_NE(decide(signal, {workers->decode[0]}).worker->id, "d0");
  workers->decode[0]->health.failed(kNow);
  const auto decision = decide(signal);
  EXPECT_NE(decision.worker->id, "d0");
  EXPECT_FALSE(decision.failed_open);
}

TEST_F(DecisionTest, WhenAllAreEjectedItFailsOpen) {
  const auto workers = registry_.snapshot();
  for (const auto& worker : workers->decode) worker->health.failed(kNow);
  const auto decision = decide(read_signal(*routing_, wire(counts_like(1))));
  ASSERT_NE(decision.worker, nullptr);
  EXPECT_TRUE(decision.failed_open);
  EXPECT_EQ(decide(Signal{}, workers->decode).worker, nullptr);
}

TEST_F(DecisionTest, PrefillGoesByPrefixAndAroundTriedWorkers) {
  const auto workers = registry_.snapshot();
  const auto first = choose_prefill(*routing_, *workers, "prompt", {}, kNow, 0).worker;
  EXPECT_EQ(choose_prefill(*routing_, *workers, "prompt", {}, kNow, 5).worker, first);
  const std::vector<WorkerPtr> tried = {first};
  const auto second = choose_prefill(*routing_, *workers, "prompt", tried, kNow, 0).worker;
  EXPECT_NE(second, first);
  EXPECT_EQ(choose_prefill(*routing_, *workers, "prompt", workers->prefill, kNow, 0).worker, nullptr);
}

TEST_F(DecisionTest, ClusterIdsMustFitTheFile) {
  config_.cluster_ids = {1, 2};
  const auto bytes = *signature::serialize_centroids(set_);
  const auto routing = make_routing(config_, "text", std::span<const std::byte>(bytes));
  ASSERT_FALSE(routing);
  EXPECT_EQ(routing.error().message, "clusterIds: 2 ids are not allowed, the centroid file has 4 rows");
  EXPECT_FALSE(make_routing(config_, "text", as_bytes("not a file")));
}

TEST_F(DecisionTest, TheRevisionFollowsFileAndCentroids) {
  const auto bytes = *signature::serialize_centroids(set_);
  const std::span<const std::byte> file(bytes);
  const auto revision = [&](std::string_view text, std::optional<std::span<const std::byte>> centroids) {
    Config config = config_;
    if (!centroids) config.cluster_ids.clear();
    return (*make_routing(config, text, centroids))->revision;
  };
  EXPECT_EQ(revision("a", file), revision("a", file));
  EXPECT_NE(revision("a", file), revision("b", file));
  EXPECT_NE(revision("a", file), revision("a", std::nullopt));
}

}  // namespace
}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// The pure decisions of the phases, each by itself.
#include <set>

#include "operator/inputs/calibration_inputs.h"
#include "operator/phases/calibration_job.h"
#include "operator/phases/children.h"
#include "operator/phases/cluster_ids.h"
#include "operator/phases/dataset.h"
#include "operator/phases/history.h"
#include "operator/phases/result.h"
#include "operator/phases/router_rollout.h"
#include "tests/operator/world.h"

namespace eldr::op::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// --- cluster ids
Json pod(const std::string& name, int age, const std::string& id = "", bool ready = true,
         bool going = false) {
  Json made = {
      {"metadata",
       {{"name", name}, {"creationTimestamp", "2026-01-01T00:00:" + std::to_string(60 - age) + "Z"}}},
      {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", ready ? "True" : "False"}}})}}}};
  if (!id.empty()) made["metadata"]["labels"][kClusterLabel] = id;
  if (going) made["metadata"]["deletionTimestamp"] = "2026-01-01T00:01:00Z";
  return made;
}

TEST(ClusterLabels, GoToReadyPodsOldestFirst) {
  EXPECT_THAT(plan_cluster_labels({pod("b", 10), pod("a", 20), pod("c", 30, "", false)}, {0, 2, 5}),
              UnorderedElementsAre(Pair("a", 0), Pair("b", 2)));
}
TEST(ClusterLabels, AreKeptForLifeAlsoWhileNotReady) {
  EXPECT_THAT(plan_cluster_labels({pod("a", 20, "2", false), pod("b", 10)}, {0, 2}),
              ElementsAre(Pair("b", 0)));
}
TEST(ClusterLabels, AReplacementTakesTheVacantOne) {
  EXPECT_THAT(
      plan_cluster_labels({pod("a", 30, "0"), pod("old", 20, "1", true, true), pod("new", 10)}, {0, 1}),
      ElementsAre(Pair("new", 1)));
}
TEST(ClusterLabels, AnUnknownOneIsReplacedOnlyWhenAnotherIsVacant) {
  EXPECT_THAT(plan_cluster_labels({pod("a", 30, "7"), pod("b", 20, "0")}, {0, 1}), ElementsAre(Pair("a", 1)));
  EXPECT_THAT(plan_cluster_labels({pod("a", 30, "7"), pod("b", 20, "0")}, {0}), IsEmpty());
}
TEST(ClusterLabels, OfTwoWithTheSameTheOlderKeepsIt) {
  EXPECT_THAT(plan_cluster_labels({pod("young", 10, "0"), pod("old", 20, "0")}, {0, 1}),
              ElementsAre(Pair("young", 1)));
}
TEST(ClusterLabels, AreNotGivenWithoutAConfiguration) {
  EXPECT_THAT(plan_cluster_labels({pod("a", 1)}, {}), IsEmpty());
}
TEST(ClusterLabels, ThatAreNoNumbersAreNone) {
  for (const char* text : {"", "x", "-1", "1x", "99999999999999"})
    EXPECT_FALSE(cluster_id_of(pod("a", 1, text))) << text;
  EXPECT_EQ(cluster_id_of(pod("a", 1, "3")), 3);
}

// --- roll-outs
TEST(RolloutPlan, RemembersWhatWasRolledOutCompletely) {
  const auto plan = plan_rollout("new", {"old", true, false}, {}, true, "");
  EXPECT_EQ(plan.memory.last_good, "old");
  EXPECT_FALSE(plan.roll_back);
}
TEST(RolloutPlan, GoesBackAfterTheDeadlineAndStaysThere) {
  const auto failed = plan_rollout("new", {"new", false, true}, {"old", "", ""}, true, "no image");
  EXPECT_TRUE(failed.roll_back);
  EXPECT_EQ(failed.memory, (RolloutMemory{"old", "new", "no image"}));
  const auto later = plan_rollout("new", {"old", true, false}, failed.memory, true, "");
  EXPECT_TRUE(later.roll_back);
  EXPECT_EQ(later.memory.failed_because, "no image");
}
TEST(RolloutPlan, TriesAgainWhenSomethingElseIsWanted) {
  const auto plan = plan_rollout("newer", {"old", true, false}, {"old", "new", "no image"}, true, "");
  EXPECT_FALSE(plan.roll_back);
  EXPECT_EQ(plan.memory, (RolloutMemory{"old", "", ""}));
}
TEST(RolloutPlan, DoesNotBlameATemplateForMissingWorkersOrWithoutAGoodOne) {
  EXPECT_FALSE(plan_rollout("new", {"new", false, true}, {"old", "", ""}, false, "x").roll_back);
  EXPECT_FALSE(plan_rollout("new", {"new", false, true}, {}, true, "x").roll_back);
}

// --- history
TEST(History, KeepsWhatIsInUseAndTheNewestOthers) {
  EXPECT_THAT(beyond_limit({"e", "d", "c", "b", "a"}, {"e", "a"}, 1), ElementsAre("c", "b"));
  EXPECT_THAT(beyond_limit({"e", "d"}, {}, 0), ElementsAre("e", "d"));
  EXPECT_THAT(beyond_limit({}, {"x"}, 3), IsEmpty());
}

// --- intents
TEST(Intent, IsContainedWhateverTheServerAdds) {
  EXPECT_TRUE(contains_intent({{"a", 1}, {"b", 2}}, {{"a", 1}}));
  EXPECT_FALSE(contains_intent({{"a", 2}}, {{"a", 1}}));
  EXPECT_TRUE(contains_intent(Json::object(), {{"a", Json::object()}, {"b", Json::array()}}));
  EXPECT_FALSE(contains_intent({{"a", Json::array({1, 2})}}, {{"a", Json::array({1})}}));
}
TEST(Intent, ComparesQuantitiesByValue) {
  const auto limits = [](const char* cpu) { return Json{{"limits", {{"cpu", cpu}}}}; };
  EXPECT_TRUE(contains_intent(limits("1"), limits("1000m")));
  EXPECT_TRUE(contains_intent(limits("512Mi"), limits("0.5Gi")));
  EXPECT_FALSE(contains_intent(limits("1"), limits("1001m")));
  EXPECT_FALSE(contains_intent(Json{{"text", "1"}}, Json{{"text", "1000m"}})) << "only where quantities are";
}
TEST(Intent, ListsWithNamesMayHaveMore) {
  const Json ours = {{"name", "a"}, {"x", 1}};
  EXPECT_TRUE(
      contains_intent(Json{{"l", Json::array({{{"name", "b"}}, ours})}}, Json{{"l", Json::array({ours})}}));
  EXPECT_FALSE(
      contains_intent(Json{{"l", Json::array({{{"name", "b"}}})}}, Json{{"l", Json::array({ours})}}));
}

// --- data sets
TEST(Prompts, AreJsonLines) {
  EXPECT_TRUE(check_prompts("{\"prompt\": \"a\"}\n\n{\"messages\": [{\"role\": \"user\"}]}"));
  for (const auto& [text, what] : {std::pair("", "empty"),
                                   {"\n \n", "empty"},
                                   {"x", "line 1 is not JSON"},
                                   {"[1]", "is not a JSON object"},
                                   {"{\"a\": 1}", "neither \"prompt\" nor"},
                                   {"{\"prompt\": 5}", "not text"},
                                   {"{\"prompt\": \"\"}", "empty \"prompt\""},
                                   {"{\"messages\": []}", "no list"}}) {
    const Status status = check_prompts(text);
    ASSERT_FALSE(status) << text;
    EXPECT_THAT(status.error().message, HasSubstr(what)) << text;
  }
}
TEST(Prompts, MayBeWrongInTwentiethsAndMessagesNeverQuoteThem) {
  std::string good;
  for (int i = 0; i < 19; ++i) good += "{\"prompt\": \"a\"}\n";
  EXPECT_TRUE(check_prompts(good + "secret words\n"));
  const Status status = check_prompts(good + "secret words\nmore\n");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("2 of 21"));
  EXPECT_EQ(status.error().message.find("secret"), std::string::npos);
}

// --- hashes
TEST(Inputs, CollectHashLeavesOutTheFit) {
  const auto spec_of = [](const std::function<void(Json&)>& change) {
    Json object = sample_policy();
    change(object["spec"]);
    return parse_policy(object)->spec;
  };
  const Json data = {{"sha256", "d"}};
  const Spec base = spec_of([](Json&) {});
  const auto before = derive_inputs(base, data, 4, "c:1");
  EXPECT_EQ(before.fit_hash, derive_inputs(base, data, 4, "c:1").fit_hash);
  struct Case {
    const char* what;
    CalibrationInputs after;
    bool collects;
    const char* reason;
  };
  for (const Case& c : {
           Case{"pool", derive_inputs(base, data, 5, "c:1"), false, "PoolSizeChanged"},
           Case{"calibrator", derive_inputs(base, data, 4, "c:2"), false, "SettingsChanged"},
           Case{"content", derive_inputs(base, {{"sha256", "e"}}, 4, "c:1"), true, "DatasetChanged"},
           Case{"ranks",
                derive_inputs(spec_of([](Json& s) { s["decode"]["expertParallel"]["ranks"] = 2; }), data, 4,
                              "c:1"),
                false, "SettingsChanged"},
           Case{"seed",
                derive_inputs(spec_of([](Json& s) { s["calibration"]["fit"]["seed"] = 2; }), data, 4, "c:1"),
                true, "DatasetChanged"},
           Case{"model",
                derive_inputs(spec_of([](Json& s) { s["model"]["revision"] = "2"; }), data, 4, "c:1"), true,
                "ModelChanged"},
           Case{"engine",
                derive_inputs(
                    spec_of([](Json& s) { s["calibration"]["engine"]["service"]["url"] = "http://x"; }), data,
                    4, "c:1"),
                true, "EngineChanged"},
       }) {
    EXPECT_NE(c.after.fit_hash, before.fit_hash) << c.what;
    EXPECT_EQ(c.after.collect_hash != before.collect_hash, c.collects) << c.what;
    EXPECT_EQ(calibration_reason(before.parts, c.after.parts), c.reason) << c.what;
  }
  EXPECT_EQ(calibration_reason(nullptr, before.parts), "FirstCalibration");
  // What does not decide the result changes no hash.
  for (const auto& change : std::vector<std::function<void(Json&)>>{
           [](Json& s) { s["routing"]["tau"] = "0.5"; }, [](Json& s) { s["router"]["replicas"] = 5; },
           [](Json& s) { s["calibration"]["minimumRho"] = "0.9"; },
           [](Json& s) { s["calibration"]["backoffLimit"] = 9; }})
    EXPECT_EQ(derive_inputs(spec_of(change), data, 4, "c:1").fit_hash, before.fit_hash);
}

// --- Jobs
TEST(ExitCode, IsReadFromAJobsCondition) {
  EXPECT_EQ(exit_code_in(
                "Container calibrate for pod a/b failed with exit code 66 matching FailJob rule at index 0"),
            66);
  EXPECT_FALSE(exit_code_in("Job has reached the specified backoff limit"));
  EXPECT_FALSE(exit_code_in("exit code "));
}
TEST(JobStates, AreToldApart) {
  const auto job = [](const char* type) {
    return Json{{"status", {{"conditions", Json::array({{{"type", type}, {"status", "True"}}})}}}};
  };
  EXPECT_EQ(state_of(nullptr), JobState::kAbsent);
  const Json failed = job("Failed"), complete = job("Complete"), suspended = {{"spec", {{"suspend", true}}}},
             going = {{"metadata", {{"deletionTimestamp", "x"}}}}, running = Json::object();
  EXPECT_EQ(state_of(&failed), JobState::kFailed);
  EXPECT_EQ(state_of(&complete), JobState::kComplete);
  EXPECT_EQ(state_of(&suspended), JobState::kSuspended);
  EXPECT_EQ(state_of(&going), JobState::kGoing);
  EXPECT_EQ(state_of(&running), JobState::kRunning);
}
TEST(Progress, IsReadFromItsAnnotation) {
  const auto with = [](const char* text) {
    return Json{{"metadata", {{"annotations", {{kProgressAnnotation, text}}}}}};
  };
  EXPECT_EQ(progress_of(with(R"({"stage":"Collecting","done":4,"total":10})"))->text, "4/10");
  EXPECT_EQ(progress_of(with(R"({"stage":"Fitting"})"))->text, "Fitting");
  EXPECT_FALSE(progress_of(with("nonsense")));
  EXPECT_FALSE(progress_of(Json::object()));
}

}  // namespace
}  // namespace eldr::op::testing

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/progress/progress.h"

#include <gtest/gtest.h>

#include "calibrator/progress/sinks.h"

namespace eldr::calibrator {
namespace {

class ManualClock final : public Clock {
 public:
  Steady steady() const override { return now; }
  Wall wall() const override { return {}; }
  Steady now{};
};

class Recorder final : public ProgressSink {
 public:
  void show(const ProgressState& state) override { states.push_back(state); }
  std::chrono::milliseconds interval() const override { return std::chrono::seconds(1); }
  std::vector<ProgressState> states;
};

TEST(Progress, ShowsFirstAndLastAndNotTooOften) {
  ManualClock clock;
  Progress progress(clock);
  const auto recorder = std::make_shared<Recorder>();
  progress.add_sink(recorder);
  for (std::size_t i = 0; i <= 100; ++i) {
    progress.update(Stage::kCollecting, i, 100);
    clock.now += std::chrono::milliseconds(50);
  }
  ASSERT_GE(recorder->states.size(), 5U);
  EXPECT_LE(recorder->states.size(), 7U);  // 5 s at once a second, and the last
  EXPECT_TRUE(recorder->states.front().stage_began);
  EXPECT_TRUE(recorder->states.back().finished());
  EXPECT_NEAR(recorder->states.back().per_second, 20, 0.5);
  progress.update(Stage::kFitting, 0, 10);
  EXPECT_EQ(recorder->states.back().stage, Stage::kFitting);
  progress.remove_sink(recorder);
  const std::size_t shown = recorder->states.size();
  progress.update(Stage::kPublishing, 0, 1);
  EXPECT_EQ(recorder->states.size(), shown);
}

TEST(Progress, NeverGoesBackWithinAStage) {
  ManualClock clock;
  Progress progress(clock);
  const auto recorder = std::make_shared<Recorder>();
  progress.add_sink(recorder);
  progress.update(Stage::kCollecting, 5, 10);
  clock.now += std::chrono::seconds(2);
  progress.update(Stage::kCollecting, 4, 10);
  EXPECT_EQ(recorder->states.back().done, 5U);
}

TEST(Progress, TextForPeople) {
  EXPECT_EQ(
      progress_text(
          {.stage = Stage::kCollecting, .done = 420, .total = 1000, .per_second = 8.1, .seconds_left = 71.6}),
      "Collecting 420/1000 (42 %), 8.1/s, 1 min 12 s left");
  EXPECT_EQ(progress_text({.stage = Stage::kWaiting}), "Waiting");
  EXPECT_EQ(progress_text({.stage = Stage::kFitting, .done = 3, .total = 3, .seconds_left = 0}),
            "Fitting 3/3 (100 %)");
  EXPECT_EQ(progress_text({.stage = Stage::kFitting, .done = 1, .total = 2, .seconds_left = 7300}),
            "Fitting 1/2 (50 %), 2 h 1 min left");
}

TEST(TerminalBar, DrawsOneLineAStage) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* terminal = open_memstream(&text, &size);
  {
    TerminalBar bar(terminal);
    bar.show({.stage = Stage::kFitting, .done = 1, .total = 2, .stage_began = true});
    bar.show({.stage = Stage::kFitting, .done = 2, .total = 2});
  }
  std::fclose(terminal);
  const std::string drawn(text, size);
  free(text);
  EXPECT_NE(drawn.find("\r[###############               ] Fitting 1/2 (50 %)"), std::string::npos) << drawn;
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), '\n'), 1);
}

}  // namespace
}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
#include "calibrator/fit/selection_record.h"

#include <gtest/gtest.h>

#include "tests/calibrator/report/fits.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

TEST(SelectionRecord, TravelsInTheCentroidFile) {
  const auto trace = samples::trace(1, {.requests = 60});
  const auto backend = make_cpu_backend(1);
  const auto fit = fit_centroids(trace, {.clusters = 3, .transform = std::nullopt}, *backend, RealClock(),
                                 [](std::size_t, std::size_t) { return true; });
  ASSERT_TRUE(fit);
  const auto set = signature::parse_centroids(*signature::serialize_centroids(fit->set));
  ASSERT_TRUE(set);
  const auto record = selection_record_of(*set);
  ASSERT_TRUE(record && *record);
  EXPECT_EQ((*record)->layers, fit->layer_order);
  ASSERT_EQ((*record)->rhos.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR((*record)->rhos[i], fit->layer_rhos[i], 5e-7);
  }
  EXPECT_EQ((*record)->held_out.size(), 4U);
  const auto held_out = held_out_rho_of(*set);
  ASSERT_TRUE(held_out && *held_out);
  EXPECT_NEAR(**held_out, *fit->held_out_rho(), 5e-7);
}

TEST(SelectionRecord, AFileMayBeWithoutIt) {
  auto set = samples::fitted(samples::trace(1, {.requests = 60}), 3);
  for (const char* key : {"layer_order", "layer_rhos", "held_out_rhos", "held_out_rho"}) {
    set.extra.erase(key);
  }
  const auto record = selection_record_of(set);
  ASSERT_TRUE(record);
  EXPECT_FALSE(*record);
  EXPECT_FALSE(*held_out_rho_of(set));
}

TEST(SelectionRecord, RefusesWhatIsNone) {
  const auto good = samples::fitted(samples::trace(1, {.requests = 60}), 3);
  struct Row {
    const char* key;
    const char* value;
    const char* says;
  };
  const Row rows[] = {
      {"layer_order", "1, 2", "must be a JSON list"},
      {"layer_order", "[]", "must be a JSON list of 1 to 512 layer numbers"},
      {"layer_order", "[-1,2,3,4,5]", "layer numbers"},
      {"layer_order", "[99,98,97,96,95]", "does not begin with the layers that the file keeps"},
      {"layer_rhos", "[0.1]", "1 numbers for 5 layers"},
      {"layer_rhos", "[0.1,0.2,0.3,0.4,1.5]", "numbers from -1 to 1"},
      {"layer_rhos", "[0.1,0.2,0.3,0.4,null]", "numbers from -1 to 1"},
      {"layer_rhos", "[[[[[[", "must be a JSON list"},
      {"held_out_rhos", "[1]", "must be a JSON object"},
      {"held_out_rhos", "{\"cube\":0.1}", "must hold transforms"},
  };
  for (const Row& row : rows) {
    auto set = good;
    set.extra[row.key] = row.value;
    const auto record = selection_record_of(set);
    ASSERT_FALSE(record) << row.key << " " << row.value;
    EXPECT_EQ(record.error().code, Code::kInvalid);
    EXPECT_NE(record.error().message.find(row.says), std::string::npos) << record.error().message;
  }
  auto half = good;
  half.extra.erase("layer_rhos");
  EXPECT_FALSE(selection_record_of(half));
  auto wrong = good;
  wrong.extra["held_out_rho"] = "nan";
  EXPECT_FALSE(held_out_rho_of(wrong));
}

}  // namespace
}  // namespace eldr::calibrator

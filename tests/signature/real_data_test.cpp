// SPDX-License-Identifier: Apache-2.0
// The recorded ESFT trace (DeepSeek-V2-Lite), where ELDR_REAL_DATA names the folder that has it.
#include <cstdlib>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "lib/signature/signature.h"
#include "lib/signature/trace.h"

namespace eldr::signature {
namespace {

class RealTrace : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("ELDR_REAL_DATA");
    if (folder == nullptr || *folder == '\0') GTEST_SKIP() << "ELDR_REAL_DATA is not set";
    auto loaded = load_trace(std::string(folder) + "/esft-dsv2lite/esft.safetensors");
    ASSERT_TRUE(loaded.has_value()) << loaded.error().to_string();
    trace = std::move(*loaded);
  }
  Trace trace;
};

ExpertCounts counts_of(const Trace& trace, std::span<const std::uint32_t> rows) {
  ExpertCounts counts;
  counts.layers = trace.layers;
  counts.experts = trace.experts;
  counts.counts.assign(rows.begin(), rows.end());
  return counts;
}

/// One unit row for each request: plain counts over all layers.
RowMatrixF unit_counts(const Trace& trace, bool decode) {
  SignatureSpec spec;
  spec.layers = trace.layers;
  spec.experts = trace.experts;
  spec.transform = Transform::kCount;
  spec.idf = RowMatrixF::Ones(static_cast<Eigen::Index>(trace.layers.size()),
                              static_cast<Eigen::Index>(trace.experts));
  RowMatrixF rows(static_cast<Eigen::Index>(trace.requests()), static_cast<Eigen::Index>(spec.dimension()));
  for (std::size_t r = 0; r < trace.requests(); ++r) {
    const auto counts = counts_of(trace, decode ? trace.decode(r) : trace.prefill(r));
    rows.row(static_cast<Eigen::Index>(r)) = signature_of(spec, counts).value().value().transpose();
  }
  return rows;
}

std::uint64_t sum(const std::vector<std::uint32_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

TEST_F(RealTrace, HasTheKnownSizes) {
  EXPECT_EQ(trace.requests(), 213U);
  EXPECT_EQ(trace.layers.size(), 26U);
  EXPECT_EQ(trace.experts, 64U);
  EXPECT_EQ(trace.top_k, 6U);
  EXPECT_EQ(sum(trace.prompt_tokens), 21085U);
  EXPECT_EQ(sum(trace.decode_tokens), 7508U);
  EXPECT_EQ(sum(trace.prefill_counts), 21085U * 26 * 6);
  EXPECT_EQ(sum(trace.decode_counts), 7508U * 26 * 6);
  EXPECT_EQ(trace.decode_offsets.back(), 7508U);
  EXPECT_EQ(trace.labels.size(), 213U);
}

TEST_F(RealTrace, PrefillIsNearestToItsOwnDecodeThenToItsTaskThenToOthers) {
  const RowMatrixF cosine = unit_counts(trace, false) * unit_counts(trace, true).transpose();
  double own = 0, same = 0, other = 0;  // means over requests of each request's mean
  for (Eigen::Index i = 0; i < cosine.rows(); ++i) {
    double alike = 0, different = 0;
    int alike_count = 0, different_count = 0;
    for (Eigen::Index j = 0; j < cosine.cols(); ++j) {
      if (i == j) continue;
      const bool same_task =
          trace.labels[static_cast<std::size_t>(i)] == trace.labels[static_cast<std::size_t>(j)];
      (same_task ? alike : different) += cosine(i, j);
      ++(same_task ? alike_count : different_count);
    }
    const auto requests = static_cast<double>(cosine.rows());
    own += cosine(i, i) / requests;
    same += alike / alike_count / requests;
    other += different / different_count / requests;
  }
  // What numpy finds: 0.65445, 0.62578, 0.47759.
  EXPECT_NEAR(own, 0.65445, 1e-4);
  EXPECT_NEAR(same, 0.62578, 1e-4);
  EXPECT_NEAR(other, 0.47759, 1e-4);
}

}  // namespace
}  // namespace eldr::signature

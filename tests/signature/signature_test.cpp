// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/signature.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tests/signature/samples.h"

namespace eldr::signature {
namespace {

constexpr Transform kAll[] = {Transform::kCountIdf, Transform::kCount, Transform::kSqrtCount,
                              Transform::kBinary};

/// Counts of layers 1, 3, 5, … with many zeros.
ExpertCounts random_counts(std::mt19937_64& random, std::size_t layers, std::uint32_t experts) {
  ExpertCounts counts;
  counts.experts = experts;
  for (std::size_t l = 0; l < layers; ++l) counts.layers.push_back(static_cast<std::int32_t>(2 * l + 1));
  for (std::size_t i = 0; i < layers * experts; ++i) {
    counts.counts.push_back(random() % 3 == 0 ? static_cast<std::uint32_t>(random() % 500) : 0U);
  }
  return counts;
}

SignatureSpec spec_of(std::mt19937_64& random, std::vector<std::int32_t> layers, std::uint32_t experts,
                      Transform transform) {
  SignatureSpec spec;
  spec.layers = std::move(layers);
  spec.experts = experts;
  spec.transform = transform;
  spec.idf =
      RowMatrixF::Ones(static_cast<Eigen::Index>(spec.layers.size()), static_cast<Eigen::Index>(experts));
  if (transform == Transform::kCountIdf) {
    for (float& weight : spec.idf.reshaped()) weight = static_cast<float>(random() % 1000) / 300;
  }
  return spec;
}

/// The definition, one number after the other.
std::vector<double> by_definition(const SignatureSpec& spec, const ExpertCounts& counts) {
  std::vector<double> x;
  for (std::size_t s = 0; s < spec.layers.size(); ++s) {
    for (std::uint32_t e = 0; e < spec.experts; ++e) {
      std::size_t row = 0;
      while (counts.layers[row] != spec.layers[s]) ++row;
      const double c = counts.counts[row * counts.experts + e];
      switch (spec.transform) {
        case Transform::kCountIdf:
          x.push_back(
              c * static_cast<double>(spec.idf(static_cast<Eigen::Index>(s), static_cast<Eigen::Index>(e))));
          break;
        case Transform::kCount:
          x.push_back(c);
          break;
        case Transform::kSqrtCount:
          x.push_back(std::sqrt(c));
          break;
        case Transform::kBinary:
          x.push_back(c > 0 ? 1 : 0);
          break;
      }
    }
  }
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares);
  return x;
}

TEST(InverseDocumentFrequency, IsItsFormula) {
  const std::vector<std::uint32_t> frequency = {0, 1, 5, 99, 100};
  const auto weights = inverse_document_frequency(frequency, 100);
  ASSERT_EQ(weights.size(), frequency.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_FLOAT_EQ(weights[i], static_cast<float>(std::log(101.0 / (frequency[i] + 1.0))));
  }
  EXPECT_EQ(weights.back(), 0.0F) << "an expert that every request uses says nothing";
  EXPECT_FLOAT_EQ(inverse_document_frequency(std::vector<std::uint32_t>{0}, 4294967295U)[0],
                  std::log(4294967296.0F));
}

TEST(Signature, AgreesWithItsDefinitionForEveryTransformAndLayerOrder) {
  std::mt19937_64 random(1);
  for (int instance = 0; instance < 50; ++instance) {
    const auto counts = random_counts(random, 5, 32);
    for (const Transform transform : kAll) {
      for (const auto& layers : std::vector<std::vector<std::int32_t>>{{1}, {9, 1, 5}, {1, 3, 5, 7, 9}}) {
        const auto spec = spec_of(random, layers, 32, transform);
        const auto signature = signature_of(spec, counts);
        ASSERT_TRUE(signature.has_value() && signature->has_value());
        const auto expected = by_definition(spec, counts);
        ASSERT_EQ(static_cast<std::size_t>((*signature)->size()), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          EXPECT_NEAR((**signature)[static_cast<Eigen::Index>(i)], expected[i], 1e-6) << name_of(transform);
        }
        EXPECT_NEAR((*signature)->norm(), 1, 1e-5);
      }
    }
  }
}

TEST(Signature, IsTheSameForCountsOfAnyScale) {
  std::mt19937_64 random(2);
  auto counts = random_counts(random, 3, 16);
  const auto spec = spec_of(random, {5, 1}, 16, Transform::kCountIdf);
  const auto once = signature_of(spec, counts).value().value();
  for (auto& count : counts.counts) count *= 8000000;
  const auto larger = signature_of(spec, counts).value().value();
  EXPECT_LT((once - larger).cwiseAbs().maxCoeff(), 1e-6F);
}

TEST(Signature, CopesWithTheLargestCounts) {
  std::mt19937_64 random(3);
  auto counts = random_counts(random, 2, 4096);
  for (auto& count : counts.counts) count = 4294967295U;
  const auto signature =
      signature_of(spec_of(random, {1, 3}, 4096, Transform::kCount), counts).value().value();
  EXPECT_NEAR(signature.norm(), 1, 1e-5);
}

TEST(Signature, AZeroVectorHasNoDirection) {
  std::mt19937_64 random(4);
  auto counts = random_counts(random, 2, 8);
  auto spec = spec_of(random, {1}, 8, Transform::kCountIdf);
  std::fill_n(counts.counts.begin(), 8, 0U);
  EXPECT_FALSE(signature_of(spec, counts).value().has_value()) << "no token in the layers of the spec";
  counts = random_counts(random, 2, 8);
  spec.idf.setZero();
  EXPECT_FALSE(signature_of(spec, counts).value().has_value()) << "every weight is zero";
}

TEST(Signature, RefusesOtherExpertsAndMissingLayers) {
  std::mt19937_64 random(5);
  const auto counts = random_counts(random, 2, 8);
  const auto other = signature_of(spec_of(random, {1}, 16, Transform::kCount), counts);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Code::kInvalid);
  EXPECT_NE(other.error().message.find("8 experts"), std::string::npos);
  const auto missing = signature_of(spec_of(random, {1, 7}, 8, Transform::kCount), counts);
  ASSERT_FALSE(missing.has_value());
  EXPECT_NE(missing.error().message.find("layer 7"), std::string::npos);
}

TEST(Similarities, AreCosines) {
  std::mt19937_64 random(6);
  const auto set = samples::centroids(6);
  const auto counts = [&] {
    auto c = random_counts(random, 3, 16);
    c.layers = {2, 4, 6};
    return c;
  }();
  const auto signature = signature_of(set.spec, counts).value().value();
  const auto got = similarities(set.centroids, signature);
  ASSERT_EQ(got.size(), set.centroids.rows());
  for (Eigen::Index k = 0; k < got.size(); ++k) {
    double dot = 0, a = 0, b = 0;
    for (Eigen::Index i = 0; i < signature.size(); ++i) {
      dot += static_cast<double>(set.centroids(k, i)) * signature[i];
      a += static_cast<double>(set.centroids(k, i)) * set.centroids(k, i);
      b += static_cast<double>(signature[i]) * signature[i];
    }
    EXPECT_NEAR(got[k], dot / std::sqrt(a * b), 1e-6);
    EXPECT_NEAR(similarities(set.centroids, set.centroids.row(k).transpose())[k], 1, 1e-6);
  }
}

TEST(Transform, NamesRoundTripAndOthersAreRefused) {
  for (const Transform transform : kAll) EXPECT_EQ(transform_from(name_of(transform)).value(), transform);
  const auto wrong = transform_from("Count");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("count-idf, count, sqrt-count or binary"), std::string::npos);
}

}  // namespace
}  // namespace eldr::signature

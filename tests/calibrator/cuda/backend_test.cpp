// SPDX-License-Identifier: Apache-2.0
// The CUDA backend on an emulated GPU, against the CPU's and the plain method.
#include "calibrator/cuda/backend.h"

#include <cmath>

#include <gtest/gtest.h>

#include "calibrator/fit/balanced_kmeans.h"
#include "calibrator/fit/fit.h"
#include "tests/calibrator/cuda/comparison.h"
#include "tests/calibrator/cuda/emulated_device.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator::cuda {
namespace {

using signature::Transform;

const auto kGoOn = [](std::size_t, std::size_t) { return true; };

std::unique_ptr<FitBackend> emulated(EmulatedGpu& gpu, std::uint64_t limit = 0) {
  auto backend = make_backend(make_emulated_device(gpu), limit, FitShape{});
  EXPECT_TRUE(backend);
  return std::move(*backend);
}

/// The same arithmetic in the same order: only the products of cuBLAS may differ, and here they hardly do.
constexpr double kTolerance = 1e-9;

TEST(CudaBackend, ChoosesTheLayersThatTheCpuChooses) {
  for (const Transform transform :
       {Transform::kCountIdf, Transform::kCount, Transform::kSqrtCount, Transform::kBinary}) {
    const Sides sides = sides_of(samples::trace(7, {.requests = 90, .layers = 6}), transform);
    EmulatedGpu gpu;
    expect_same(select(*emulated(gpu), sides), select(*make_cpu_backend(2), sides), kTolerance);
    EXPECT_EQ(gpu.taken, 0U);
  }
}

TEST(CudaBackend, GivesTheRhoOfThePlainMethod) {
  const auto trace = samples::trace(8, {.requests = 50, .layers = 4});
  EmulatedGpu gpu;
  const auto selection = select(*emulated(gpu), sides_of(trace, Transform::kCountIdf));
  for (std::size_t size = 1; size <= selection.order.size(); ++size) {
    const std::vector<std::size_t> layers(selection.order.begin(),
                                          selection.order.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_NEAR(selection.rhos[size - 1], samples::rho(trace, layers, Transform::kCountIdf), 1e-7);
  }
}

TEST(CudaBackend, SelectsTheKnownLayersOfTheRecordedTrace) {
  const auto folder = samples::real_data();
  if (!folder) {
    GTEST_SKIP() << "ELDR_REAL_DATA is not set";
  }
  const auto trace = signature::load_trace(*folder + "/esft-dsv2lite/esft.safetensors");
  ASSERT_TRUE(trace) << trace.error().message;
  const Sides sides = sides_of(*trace, Transform::kCountIdf);
  EmulatedGpu gpu;
  const auto selection = select(*emulated(gpu), sides);
  EXPECT_NEAR(selection.rho(), 0.4989, 5e-5);
  EXPECT_NEAR(selection.rhos.back(), 0.3319, 5e-5);
  expect_same(selection, select(*make_cpu_backend(2), sides), kTolerance);
}

TEST(CudaBackend, StreamsInTilesUnderALimitWithTheSameResult) {
  const Sides sides = sides_of(samples::trace(9, {.requests = 200, .layers = 8}), Transform::kCountIdf);
  const LayerSelection expected = select(*make_cpu_backend(1), sides);
  EmulatedGpu roomy;
  expect_same(select(*emulated(roomy), sides), expected, kTolerance);

  // Pairs take 28 * 19,900 bytes, a layer 80,000: with so little some layers stay and some do not, with less
  // none.
  std::uint64_t grams = roomy.grams;
  for (const std::uint64_t limit : {1'250'000U, 1'000'000U}) {
    EmulatedGpu gpu;
    expect_same(select(*emulated(gpu, limit), sides), expected, kTolerance);
    EXPECT_LE(gpu.most_taken, limit);
    EXPECT_LT(gpu.largest_gram_block, 200U * 200U);
    EXPECT_GT(gpu.grams, grams);  // layers were computed again
    grams = gpu.grams;
  }
  EmulatedGpu gpu;
  const auto scorer = emulated(gpu, 600'000)->layer_scorer(sides.prefill, sides.decode);
  ASSERT_FALSE(scorer);
  EXPECT_EQ(scorer.error().code, Code::kResourceExhausted);
  EXPECT_NE(scorer.error().message.find("200 requests"), std::string::npos) << scorer.error().message;
}

TEST(CudaBackend, TiesRequestsThatAreTheSame) {
  auto trace = samples::trace(10, {.requests = 40, .layers = 3});
  const std::size_t row = trace.layers.size() * trace.experts;
  for (std::size_t copy = 20; copy < 40; ++copy) {
    std::copy_n(trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>((copy - 20) / 4 * row), row,
                trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>(copy * row));
  }
  std::fill_n(trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>(3 * row), row, 0U);
  const Sides sides = sides_of(trace, Transform::kCountIdf);
  EmulatedGpu gpu;
  expect_same(select(*emulated(gpu), sides), select(*make_cpu_backend(1), sides), kTolerance);
}

TEST(CudaBackend, RefusesWhatTheCpuRefuses) {
  EmulatedGpu gpu;
  const auto backend = emulated(gpu);
  Sides sides = sides_of(samples::trace(1, {.requests = 2, .layers = 1}), Transform::kCount);
  EXPECT_TRUE(backend->layer_scorer(sides.prefill, sides.decode));
  for (auto* side : {&sides.prefill, &sides.decode}) {
    for (auto& matrix : side->layer_matrices) {
      matrix.conservativeResize(1, Eigen::NoChange);
    }
  }
  EXPECT_EQ(backend->layer_scorer(sides.prefill, sides.decode).error().code, Code::kInvalid);
}

signature::RowMatrixF unit_rows(std::size_t requests) {
  auto trace = samples::trace(11, {.requests = requests, .layers = 3});
  const std::size_t row = trace.layers.size() * trace.experts;
  std::fill_n(trace.prefill_counts.begin() + static_cast<std::ptrdiff_t>(5 * row), row, 0U);
  return unit_signatures(sides_of(trace, Transform::kCountIdf).prefill);
}

TEST(CudaSimilarities, AreThoseOfTheCpu) {
  const auto rows = unit_rows(70);
  const auto cpu = make_cpu_backend(1)->similarities(rows).value();
  std::vector<std::uint32_t> cluster_of(70);
  for (std::uint32_t i = 0; i < 70; ++i) {
    cluster_of[i] = i == 5 ? kNoCluster : i % 7 == 6 ? 0 : i % 7;  // of 8, two without members
  }
  const Eigen::MatrixXd expected = cpu->distances_to_centroids(cluster_of, 8).value();
  // Kept in memory, and computed anew under a limit that holds 184 KB for clusters and rows and not 19.6
  // more.
  for (const std::uint64_t limit : {0U, 189'000U}) {
    EmulatedGpu gpu;
    const auto cuda = emulated(gpu, limit)->similarities(rows).value();
    ASSERT_EQ(cuda->requests(), 70U);
    std::vector<float> ours(70);
    std::vector<float> theirs(70);
    for (std::size_t i = 0; i < 70; ++i) {
      EXPECT_EQ(cuda->has_direction(i), i != 5);
      ASSERT_TRUE(cuda->row(i, ours));
      ASSERT_TRUE(cpu->row(i, theirs));
      for (std::size_t j = 0; j < 70; ++j) {
        ASSERT_NEAR(ours[j], theirs[j], 1e-7);
      }
    }
    const auto distances = cuda->distances_to_centroids(cluster_of, 8);
    ASSERT_TRUE(distances);
    EXPECT_LT((*distances - expected).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_EQ(gpu.grams > 70, limit > 0) << gpu.grams;
    if (limit > 0) {
      EXPECT_LE(gpu.most_taken, limit);
    }
  }
}

TEST(CudaBackend, FitsAsTheCpuFits) {
  const auto trace = samples::trace(12, {.requests = 80, .layers = 5});
  FitOptions options;
  options.clusters = 5;
  options.threads = 2;  // starts of k-means that share the GPU
  const auto cpu = fit_centroids(trace, options, *make_cpu_backend(2), RealClock(), kGoOn);
  EmulatedGpu gpu;
  const auto cuda = fit_centroids(trace, options, *emulated(gpu), RealClock(), kGoOn);
  ASSERT_TRUE(cpu);
  ASSERT_TRUE(cuda);
  EXPECT_EQ(cuda->set.assignment, cpu->set.assignment);
  EXPECT_EQ(cuda->set.spec.layers, cpu->set.spec.layers);
  EXPECT_NEAR(cuda->set.rho, cpu->set.rho, 1e-9);
  EXPECT_NEAR(*cuda->held_out_rho(), *cpu->held_out_rho(), 1e-9);
  EXPECT_LT((cuda->set.centroids - cpu->set.centroids).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_EQ(gpu.taken, 0U);
}

TEST(CudaBackend, ReportsAFailureOfTheDeviceAtEveryCall) {
  const auto trace = samples::trace(13, {.requests = 24, .layers = 2});
  FitOptions options;
  options.clusters = 2;
  options.restarts = 1;
  std::uint64_t failures = 0;
  for (std::uint64_t calls = 0;; ++calls) {
    EmulatedGpu gpu;
    gpu.calls_until_failure = calls;
    const auto result = fit_centroids(trace, options, *emulated(gpu), RealClock(), kGoOn);
    EXPECT_EQ(gpu.taken, 0U);
    if (result) {
      break;
    }
    ++failures;
    ASSERT_EQ(result.error().code, Code::kInternal);
    ASSERT_NE(result.error().message.find("illegal memory access"), std::string::npos);
  }
  EXPECT_GT(failures, 100U);
}

TEST(CudaBackend, IsRefusedWhereTheFitWillNotFit) {
  EmulatedGpu gpu;
  gpu.memory = std::uint64_t{512} << 20U;
  const auto backend = make_backend(make_emulated_device(gpu), 0, FitShape{8000, 48, 128});
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, Code::kResourceExhausted);
  EXPECT_NE(backend.error().message.find("409 MiB may be used"), std::string::npos)  // 0.8 of what is free
      << backend.error().message;
}

TEST(CudaBackend, SaysWhenAnotherProgramTookTheMemory) {
  const Sides sides = sides_of(samples::trace(9, {.requests = 60, .layers = 2}), Transform::kCountIdf);
  EmulatedGpu gpu;
  const auto backend = emulated(gpu);
  gpu.memory = 1000;
  const auto scorer = backend->layer_scorer(sides.prefill, sides.decode);
  ASSERT_FALSE(scorer);
  EXPECT_EQ(scorer.error().code, Code::kResourceExhausted);
  EXPECT_EQ(gpu.taken, 0U);
}

}  // namespace
}  // namespace eldr::calibrator::cuda

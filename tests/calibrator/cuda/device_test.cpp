// SPDX-License-Identifier: Apache-2.0
// The plugin on a real GPU: each call of Device against the emulated one, whole selections and fits against
// the CPU. Skipped, saying why, where there is no GPU.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "calibrator/cuda/backend.h"
#include "calibrator/cuda/plugin_loader.h"
#include "calibrator/cuda/session.h"
#include "calibrator/fit/fit.h"
#include "tests/calibrator/cuda/comparison.h"
#include "tests/calibrator/cuda/emulated_device.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator::cuda {
namespace {

using signature::Transform;

/// What results of GPU and CPU may differ by.
constexpr double kTolerance = 1e-5;
constexpr unsigned kThreads = 8;

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = open_device({.file = "", .program_directory = ELDR_BINARY_DIR "/bin"});
    if (!device) {
      GTEST_SKIP() << "no GPU: " << device.error().message;
    }
    device_ = std::move(*device);
  }

  std::unique_ptr<FitBackend> backend(std::uint64_t limit = 0) {
    auto made = make_backend(std::move(device_), limit, FitShape{});
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    return std::move(*made);
  }

  std::unique_ptr<Device> device_;
};

/// A copy of a vector in the memory of a device.
template <class T>
class OnDevice {
 public:
  OnDevice(Device& device, const std::vector<T>& values) : device_(device), count_(values.size()) {
    void* memory = nullptr;
    EXPECT_FALSE(device.allocate(bytes(), &memory));
    data_ = static_cast<T*>(memory);
    EXPECT_FALSE(device.upload(data_, values.data(), bytes()));
  }
  ~OnDevice() { device_.release(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* data() const { return data_; }
  std::vector<T> values(const T* from) const {
    std::vector<T> out(count_);
    EXPECT_FALSE(device_.download(out.data(), from, bytes()));
    return out;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }

  Device& device_;
  std::size_t count_;
  T* data_ = nullptr;
};

struct Sorted {
  std::vector<std::uint32_t> keys;
  std::vector<std::uint32_t> payload;
  RankSums sums;
};

Sorted sort_and_sum(Device& device, const std::vector<std::uint32_t>& keys,
                    const std::vector<std::uint32_t>& payload) {
  const OnDevice a(device, keys);
  const OnDevice b(device, payload);
  const OnDevice c(device, keys);
  const OnDevice d(device, payload);
  std::size_t bytes = 0;
  EXPECT_FALSE(device.scratch_bytes(keys.size(), bytes));
  const OnDevice scratch(device, std::vector<char>(bytes));
  SortBuffers buffers{a.data(), b.data(), c.data(), d.data()};
  EXPECT_FALSE(device.sort(buffers, keys.size(), scratch.data(), bytes));
  Sorted result{a.values(buffers.keys), b.values(buffers.payload), {0, 0}};
  const DeviceError error = device.sum(PlaceSums{buffers.keys, buffers.payload, keys.size()}, keys.size(),
                                       scratch.data(), bytes, result.sums);
  EXPECT_FALSE(error) << error.message;
  return result;
}

TEST_F(GpuTest, SortsAndSumsAsTheHostDoes) {
  std::mt19937_64 random(1);
  EmulatedGpu gpu;
  const auto host = make_emulated_device(gpu);
  for (const std::size_t count : {1U, 2U, 33U, 5000U, 3'000'001U}) {
    for (const std::uint32_t distinct : {1U, 7U, 1U << 30U}) {
      std::vector<std::uint32_t> keys(count);
      std::vector<std::uint32_t> payload(count);
      for (std::size_t i = 0; i < count; ++i) {
        keys[i] = static_cast<std::uint32_t>(random() % distinct) * (0x7FFFFFFFU / distinct);
        payload[i] = static_cast<std::uint32_t>(random());
      }
      const Sorted ours = sort_and_sum(*device_, keys, payload);
      const Sorted theirs = sort_and_sum(*host, keys, payload);
      ASSERT_EQ(ours.keys, theirs.keys) << count << " keys";
      ASSERT_EQ(ours.payload, theirs.payload) << count << " keys";  // both sorts are stable
      ASSERT_TRUE(ours.sums.squares == theirs.sums.squares && ours.sums.products == theirs.sums.products);
    }
  }
}

TEST_F(GpuTest, MultipliesBlocksInDouble) {
  const std::uint64_t n = 301;
  const std::uint64_t columns = 67;
  std::mt19937_64 random(2);
  std::vector<double> rows(n * columns);
  for (double& value : rows) {
    value = static_cast<double>(random() % 100'000) * 0.37;
  }
  EmulatedGpu gpu;
  const auto host = make_emulated_device(gpu);
  for (const GramBlock& block :
       {GramBlock{0, n, 0, n}, GramBlock{17, 40, 17, n - 17}, GramBlock{300, 1, 0, n}}) {
    std::vector<double> results[2];
    for (Device* device : {device_.get(), host.get()}) {
      const OnDevice in(*device, rows);
      const OnDevice out(*device, std::vector<double>(block.size()));
      const DeviceError error = device->gram(in.data(), columns, block, out.data());
      ASSERT_FALSE(error) << error.message;
      results[device == host.get()] = out.values(out.data());
    }
    for (std::size_t entry = 0; entry < block.size(); ++entry) {
      ASSERT_NEAR(results[0][entry], results[1][entry], 1e-13 * results[1][entry]);
    }
  }
}

TEST_F(GpuTest, SelectsTheLayersThatTheCpuSelects) {
  const auto gpu = backend();
  const auto cpu = make_cpu_backend(kThreads);
  for (const Transform transform :
       {Transform::kCountIdf, Transform::kCount, Transform::kSqrtCount, Transform::kBinary}) {
    for (const std::size_t requests : {2U, 61U, 700U}) {
      const Sides sides =
          sides_of(samples::trace(requests, {.requests = requests, .layers = 9, .experts = 32}), transform);
      expect_same(select(*gpu, sides), select(*cpu, sides), kTolerance);
    }
  }
}

TEST_F(GpuTest, GivesTheSameUnderAMemoryLimit) {
  const Sides sides =
      sides_of(samples::trace(3, {.requests = 1000, .layers = 10, .experts = 32}), Transform::kCountIdf);
  const auto tight = backend(24U << 20U);  // 14 MB for the pairs, 2 for each layer
  expect_same(select(*tight, sides), select(*make_cpu_backend(kThreads), sides), kTolerance);
}

TEST_F(GpuTest, FitsAsTheCpuFits) {
  const auto trace = samples::trace(4, {.requests = 400, .layers = 6, .experts = 32});
  FitOptions options;
  options.clusters = 7;
  options.threads = 4;
  const auto go_on = [](std::size_t, std::size_t) { return true; };
  const auto cpu = fit_centroids(trace, options, *make_cpu_backend(4), RealClock(), go_on);
  const auto gpu = fit_centroids(trace, options, *backend(), RealClock(), go_on);
  ASSERT_TRUE(cpu);
  ASSERT_TRUE(gpu) << gpu.error().message;
  EXPECT_EQ(gpu->set.spec.layers, cpu->set.spec.layers);
  EXPECT_NEAR(gpu->set.rho, cpu->set.rho, kTolerance);
  EXPECT_NEAR(*gpu->held_out_rho(), *cpu->held_out_rho(), kTolerance);
  EXPECT_EQ(gpu->set.assignment, cpu->set.assignment);
}

TEST_F(GpuTest, SelectsTheKnownLayersOfTheRecordedTrace) {
  const auto folder = samples::real_data();
  if (!folder) {
    GTEST_SKIP() << "ELDR_REAL_DATA is not set";
  }
  const auto trace = signature::load_trace(*folder + "/esft-dsv2lite/esft.safetensors");
  ASSERT_TRUE(trace) << trace.error().message;
  const auto selection = select(*backend(), sides_of(*trace, Transform::kCountIdf));
  EXPECT_NEAR(selection.rho(), 0.4989, 5e-5);
  EXPECT_NEAR(selection.rhos.back(), 0.3319, 5e-5);
  EXPECT_EQ(selection.keep, 2U);
}

TEST_F(GpuTest, SelectsAmongThirtyTwoMillionPairs) {
  const Sides sides = sides_of(
      samples::trace(
          5, {.requests = 8000, .layers = 3, .experts = 32, .prompt_tokens = 20, .decode_tokens = 10}),
      Transform::kCountIdf);
  expect_same(select(*backend(), sides), select(*make_cpu_backend(kThreads), sides), kTolerance);
}

}  // namespace
}  // namespace eldr::calibrator::cuda

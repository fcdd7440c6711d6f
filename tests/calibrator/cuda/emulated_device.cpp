// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrator/cuda/emulated_device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

namespace eldr::calibrator::cuda {
namespace {

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(EmulatedGpu& gpu) : gpu_(gpu) {}

  DeviceError facts(DeviceFacts& out) override {
    std::snprintf(out.name, sizeof out.name, "emulated");
    out.free_bytes = gpu_.memory - gpu_.taken;
    out.total_bytes = gpu_.memory;
    return {};
  }

  DeviceError allocate(std::size_t bytes, void** out) override {
    const std::lock_guard lock(mutex_);
    if (gpu_.taken + bytes > gpu_.memory) {
      return error(DeviceError::kOutOfMemory, "out of memory");
    }
    // Not cleared, as on a GPU: what is read before it is written must not look right.
    *out = std::malloc(bytes);
    std::memset(*out, 0xA5, bytes);
    sizes_[*out] = bytes;
    gpu_.taken += bytes;
    gpu_.most_taken = std::max(gpu_.most_taken, gpu_.taken);
    return {};
  }
  void release(void* memory) override {
    const std::lock_guard lock(mutex_);
    gpu_.taken -= sizes_.at(memory);
    sizes_.erase(memory);
    std::free(memory);
  }

  DeviceError clear(void* memory, std::size_t bytes) override {
    return call([&] { std::memset(inside(memory, bytes), 0, bytes); });
  }
  DeviceError upload(void* to, const void* from, std::size_t bytes) override {
    return call([&] { std::memcpy(inside(to, bytes), from, bytes); });
  }
  DeviceError download(void* to, const void* from, std::size_t bytes) override {
    return call([&] { std::memcpy(to, inside(from, bytes), bytes); });
  }

  DeviceError gram(const double* rows, std::uint64_t columns, const GramBlock& block, double* out) override {
    return call([&] {
      ++gpu_.grams;
      gpu_.largest_gram_block = std::max(gpu_.largest_gram_block, block.size());
      inside(out, block.size() * sizeof(double));
      for (std::uint64_t entry = 0; entry < block.size(); ++entry) {
        const double* a = rows + block.row_of(entry) * columns;
        const double* b = rows + block.column_of(entry) * columns;
        out[entry] = std::inner_product(a, a + columns, b, 0.0);
      }
    });
  }

  DeviceError for_each(const Widen& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const Narrow& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const PackLayer& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const AddBlock& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const AddLayer& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const TargetKeys& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const ScoreKeys& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const ScatterRanks& body, std::uint64_t count) override { return loop(body, count); }
  DeviceError for_each(const ClusterSums& body, std::uint64_t count) override { return loop(body, count); }

  DeviceError scratch_bytes(std::uint64_t count, std::size_t& out) override {
    out = 1000 + count / 100;
    return {};
  }

  /// Into the other buffers, which then are the sorted ones.
  DeviceError sort(SortBuffers& buffers, std::uint64_t count, void* scratch, std::size_t bytes) override {
    return call([&] {
      inside(scratch, bytes);
      std::vector<std::uint32_t> order(count);
      std::iota(order.begin(), order.end(), 0U);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::uint32_t a, std::uint32_t b) { return buffers.keys[a] < buffers.keys[b]; });
      for (std::uint64_t place = 0; place < count; ++place) {
        buffers.other_keys[place] = buffers.keys[order[place]];
        buffers.other_payload[place] = buffers.payload[order[place]];
      }
      std::swap(buffers.keys, buffers.other_keys);
      std::swap(buffers.payload, buffers.other_payload);
    });
  }

  DeviceError sum(const PlaceSums& body, std::uint64_t count, void* scratch, std::size_t bytes,
                  RankSums& out) override {
    return call([&] {
      inside(scratch, bytes);
      out = {0, 0};
      for (std::uint64_t place = 0; place < count; ++place) {
        out = out + body(place);
      }
    });
  }

 private:
  static DeviceError error(DeviceError::Kind kind, const char* message) {
    DeviceError error;
    error.kind = kind;
    std::snprintf(error.message, sizeof error.message, "%s", message);
    return error;
  }

  /// From the last to the first: a GPU promises no order.
  template <class Body>
  DeviceError loop(const Body& body, std::uint64_t count) {
    return call([&] {
      for (std::uint64_t i = count; i-- > 0;) {
        body(i);
      }
    });
  }

  template <class Body>
  DeviceError call(Body body) {
    if (gpu_.calls_until_failure == 0) {
      return error(DeviceError::kFailed, "an illegal memory access was encountered");
    }
    --gpu_.calls_until_failure;
    body();
    return {};
  }

  /// The memory, which must lie in one allocation.
  template <class Memory>
  Memory* inside(Memory* memory, std::size_t bytes) const {
    const std::lock_guard lock(mutex_);
    const auto* begin = reinterpret_cast<const char*>(memory);
    auto after = sizes_.upper_bound(const_cast<void*>(static_cast<const void*>(memory)));
    if (after == sizes_.begin() ||
        begin + bytes > static_cast<const char*>(std::prev(after)->first) + std::prev(after)->second) {
      std::fprintf(stderr, "emulated GPU: %zu bytes outside every allocation\n", bytes);
      std::abort();
    }
    return memory;
  }

  EmulatedGpu& gpu_;
  std::map<void*, std::size_t> sizes_;
  mutable std::mutex mutex_;  ///< of sizes_ and what is taken
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(EmulatedGpu& gpu) {
  return std::make_unique<EmulatedDevice>(gpu);
}

}  // namespace eldr::calibrator::cuda

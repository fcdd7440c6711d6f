// SPDX-License-Identifier: Apache-2.0
// What the CUDA backend asks of a GPU. The plugin (plugin/cuda_device.cu) implements it with CUDA, cuBLAS and
// CUB; tests with plain loops, so that everything above it runs without a GPU.
//
// Objects cross the border of a shared library: no standard library types, no exceptions. allocate() and
// release() may be called from any thread; all else by one thread at a time. Calls return when the device is
// done or when order makes waiting needless.
#pragma once

#include <cstddef>
#include <cstdint>

#include "calibrator/cuda/kernels.h"

namespace eldr::calibrator::cuda {

struct DeviceError {
  enum Kind : std::int32_t { kNone, kOutOfMemory, kNoDevice, kFailed };
  Kind kind = kNone;
  char message[240] = {};  ///< for people, zero-terminated

  explicit operator bool() const { return kind != kNone; }
};

struct DeviceFacts {
  char name[128] = {};
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

/// Keys and payloads to sort, and as much room again; 4 bytes each.
struct SortBuffers {
  std::uint32_t* keys;
  std::uint32_t* payload;
  std::uint32_t* other_keys;
  std::uint32_t* other_payload;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceError facts(DeviceFacts& out) = 0;

  virtual DeviceError allocate(std::size_t bytes, void** out) = 0;
  virtual void release(void* memory) = 0;
  virtual DeviceError clear(void* memory, std::size_t bytes) = 0;
  virtual DeviceError upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual DeviceError download(void* to, const void* from, std::size_t bytes) = 0;

  /// A block of rows * rows^T in double; `rows` is [N][columns], row-major, `out` is [height][width].
  virtual DeviceError gram(const double* rows, std::uint64_t columns, const GramBlock& block,
                           double* out) = 0;

  virtual DeviceError for_each(const Widen& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const Narrow& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const PackLayer& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const AddBlock& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const AddLayer& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const TargetKeys& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const ScoreKeys& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const ScatterRanks& body, std::uint64_t count) = 0;
  virtual DeviceError for_each(const ClusterSums& body, std::uint64_t count) = 0;

  /// Device memory that the two calls below need for so many entries.
  virtual DeviceError scratch_bytes(std::uint64_t count, std::size_t& out) = 0;
  /// By key, kKeyBits of it. Afterwards keys and payload are the sorted ones: the buffers may have changed
  /// places.
  virtual DeviceError sort(SortBuffers& buffers, std::uint64_t count, void* scratch,
                           std::size_t scratch_bytes) = 0;
  /// Sum of body(0) … body(count - 1).
  virtual DeviceError sum(const PlaceSums& body, std::uint64_t count, void* scratch,
                          std::size_t scratch_bytes, RankSums& out) = 0;
};

}  // namespace eldr::calibrator::cuda

// SPDX-License-Identifier: Apache-2.0
// One GPU, shared by what a backend has made, with a limit on the memory taken of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "calibrator/cuda/device.h"
#include "lib/base/status.h"

namespace eldr::calibrator::cuda {

/// kOutOfMemory is kResourceExhausted, kNoDevice is kUnavailable, the rest kInternal.
Status to_status(const DeviceError& error);

/// Memory is taken and given back from any thread; the device computes for who holds the lock.
class Session {
 public:
  /// `memory_limit` in bytes.
  Session(std::unique_ptr<Device> device, std::uint64_t memory_limit)
      : device_(std::move(device)), memory_limit_(memory_limit) {}

  Device& device() { return *device_; }
  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  /// Bytes that may still be taken.
  std::uint64_t available() const;

 private:
  friend class DeviceBlock;

  std::unique_ptr<Device> device_;
  std::uint64_t memory_limit_;
  std::atomic<std::uint64_t> taken_{0};
  std::mutex mutex_;
};

/// A piece of device memory; movable, given back at the end. Keeps the session alive.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  /// kResourceExhausted: over the session's limit, or the device has no more.
  static Result<DeviceBlock> take(std::shared_ptr<Session> session, std::uint64_t bytes);
  DeviceBlock(DeviceBlock&& other) noexcept;
  DeviceBlock& operator=(DeviceBlock&& other) noexcept;
  ~DeviceBlock();

  template <class T>
  T* at(std::uint64_t offset) const {
    return reinterpret_cast<T*>(static_cast<char*>(memory_) + offset);
  }

 private:
  std::shared_ptr<Session> session_;
  void* memory_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace eldr::calibrator::cuda

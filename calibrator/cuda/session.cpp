// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/session.h"

#include <string>
#include <utility>

namespace eldr::calibrator::cuda {

Status to_status(const DeviceError& error) {
  switch (error.kind) {
    case DeviceError::kNone:
      return {};
    case DeviceError::kOutOfMemory:
      return failure(Code::kResourceExhausted, std::string("GPU: ") + error.message);
    case DeviceError::kNoDevice:
      return failure(Code::kUnavailable, error.message);
    case DeviceError::kFailed:
      break;
  }
  return failure(Code::kInternal, std::string("GPU: ") + error.message);
}

std::uint64_t Session::available() const {
  const std::uint64_t taken = taken_.load();
  return taken < memory_limit_ ? memory_limit_ - taken : 0;
}

Result<DeviceBlock> DeviceBlock::take(std::shared_ptr<Session> session, std::uint64_t bytes) {
  const std::uint64_t before = session->taken_.fetch_add(bytes);
  DeviceBlock block;
  block.session_ = std::move(session);
  block.bytes_ = bytes;  // given back by the destructor, also where the rest fails
  if (before + bytes > block.session_->memory_limit_) {
    return failure(Code::kResourceExhausted, "GPU memory: " + std::to_string((before + bytes) >> 20U) +
                                                 " MiB are needed; the limit is " +
                                                 std::to_string(block.session_->memory_limit_ >> 20U) +
                                                 " MiB");
  }
  if (const Status status = to_status(block.session_->device().allocate(bytes, &block.memory_)); !status) {
    return failure(status.error());
  }
  return block;
}

DeviceBlock::DeviceBlock(DeviceBlock&& other) noexcept { *this = std::move(other); }

DeviceBlock& DeviceBlock::operator=(DeviceBlock&& other) noexcept {
  std::swap(session_, other.session_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBlock::~DeviceBlock() {
  if (memory_ != nullptr) {
    session_->device().release(memory_);
  }
  if (session_ != nullptr) {
    session_->taken_.fetch_sub(bytes_);
  }
}

}  // namespace eldr::calibrator::cuda

// SPDX-License-Identifier: Apache-2.0
// Device on the first visible GPU: one stream, in order.
#include <cub/device/device_for.cuh>
#include <memory>
#include <new>

#include <cublas_v2.h>

#include "calibrator/cuda/plugin/cuda_device.h"
#include "calibrator/cuda/plugin/plugin.h"

namespace eldr::calibrator::cuda {
namespace {

DeviceError blas_error(cublasStatus_t status, const char* what) {
  DeviceError error;
  if (status != CUBLAS_STATUS_SUCCESS) {
    error.kind = status == CUBLAS_STATUS_ALLOC_FAILED ? DeviceError::kOutOfMemory : DeviceError::kFailed;
    std::snprintf(error.message, sizeof error.message, "%s: %s", what, cublasGetStatusString(status));
  }
  return error;
}

/// Why there is none, in words that say what to do about it.
DeviceError no_device(cudaError_t status) {
  int driver = 0;
  DeviceError error;
  error.kind = DeviceError::kNoDevice;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    std::snprintf(error.message, sizeof error.message, "no NVIDIA driver is installed");
  } else if (status == cudaErrorInsufficientDriver) {
    std::snprintf(error.message, sizeof error.message,
                  "the NVIDIA driver is for CUDA %d.%d; one for CUDA %d.0 or later is needed", driver / 1000,
                  driver % 1000 / 10, CUDART_VERSION / 1000);
  } else {
    std::snprintf(error.message, sizeof error.message, "no GPU can be used: %s", cudaGetErrorString(status));
  }
  return error;
}

/// The sum's place at the head of the scratch memory; CUB's own memory follows, aligned as cudaMalloc aligns.
constexpr std::size_t kSumBytes = 256;
static_assert(sizeof(RankSums) <= kSumBytes);

class CudaDevice final : public Device {
 public:
  ~CudaDevice() override {
    if (blas_ != nullptr) {
      cublasDestroy(blas_);
    }
    if (stream_ != nullptr) {
      cudaStreamDestroy(stream_);
    }
  }

  DeviceError open() {
    int devices = 0;
    cudaError_t status = cudaGetDeviceCount(&devices);
    if (status == cudaSuccess && devices == 0) {
      status = cudaErrorNoDevice;
    }
    if (status != cudaSuccess) {
      return no_device(status);
    }
    status = cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    if (status != cudaSuccess) {
      return error_of(status, "cudaStreamCreate");
    }
    if (const DeviceError error = blas_error(cublasCreate(&blas_), "cublasCreate")) {
      return error;
    }
    if (const DeviceError error = blas_error(cublasSetStream(blas_, stream_), "cublasSetStream")) {
      return error;
    }
    // Double as IEEE 754 has it: no emulation by narrower units, whatever the environment asks for.
    return blas_error(cublasSetMathMode(blas_, CUBLAS_PEDANTIC_MATH), "cublasSetMathMode");
  }

  DeviceError facts(DeviceFacts& out) override {
    cudaDeviceProp properties{};
    if (const cudaError_t status = cudaGetDeviceProperties(&properties, 0); status != cudaSuccess) {
      return error_of(status, "cudaGetDeviceProperties");
    }
    std::snprintf(out.name, sizeof out.name, "%.100s (sm_%d%d)", properties.name, properties.major,
                  properties.minor);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    const cudaError_t status = cudaMemGetInfo(&free_bytes, &total_bytes);
    out.free_bytes = free_bytes;
    out.total_bytes = total_bytes;
    return error_of(status, "cudaMemGetInfo");
  }

  DeviceError allocate(std::size_t bytes, void** out) override {
    const cudaError_t status = cudaMalloc(out, bytes);
    if (status != cudaSuccess) {
      cudaGetLastError();  // an allocation that failed must not be seen as the failure of the next launch
    }
    return error_of(status, "cudaMalloc");
  }
  void release(void* memory) override { cudaFree(memory); }

  DeviceError clear(void* memory, std::size_t bytes) override {
    return error_of(cudaMemsetAsync(memory, 0, bytes, stream_), "cudaMemset");
  }
  DeviceError upload(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes, cudaMemcpyHostToDevice);
  }
  DeviceError download(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes, cudaMemcpyDeviceToHost);
  }

  /// cuBLAS counts columns first: its [width][height] block is our [height][width].
  DeviceError gram(const double* rows, std::uint64_t columns, const GramBlock& block, double* out) override {
    const double one = 1;
    const double zero = 0;
    const auto depth = static_cast<std::int64_t>(columns);
    const auto width = static_cast<std::int64_t>(block.width);
    return blas_error(
        cublasDgemm_64(blas_, CUBLAS_OP_T, CUBLAS_OP_N, width, static_cast<std::int64_t>(block.height), depth,
                       &one, rows + block.column * columns, depth, rows + block.row * columns, depth, &zero,
                       out, width),
        "cublasDgemm");
  }

  DeviceError for_each(const Widen& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const Narrow& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const PackLayer& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const AddBlock& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const AddLayer& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const TargetKeys& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const ScoreKeys& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const ScatterRanks& body, std::uint64_t count) override { return bulk(body, count); }
  DeviceError for_each(const ClusterSums& body, std::uint64_t count) override { return bulk(body, count); }

  DeviceError scratch_bytes(std::uint64_t count, std::size_t& out) override {
    SortBuffers buffers{};
    std::size_t for_sort = 0;
    if (const cudaError_t status = sort_by_key(nullptr, for_sort, buffers, count, stream_);
        status != cudaSuccess) {
      return error_of(status, "cub::DeviceRadixSort");
    }
    std::size_t for_sum = 0;
    const cudaError_t status = sum_places(nullptr, for_sum, PlaceSums{}, count, nullptr, stream_);
    out = for_sort > kSumBytes + for_sum ? for_sort : kSumBytes + for_sum;
    return error_of(status, "cub::DeviceReduce");
  }

  DeviceError sort(SortBuffers& buffers, std::uint64_t count, void* scratch,
                   std::size_t scratch_bytes) override {
    return error_of(sort_by_key(scratch, scratch_bytes, buffers, count, stream_), "cub::DeviceRadixSort");
  }

  DeviceError sum(const PlaceSums& body, std::uint64_t count, void* scratch, std::size_t scratch_bytes,
                  RankSums& out) override {
    auto* result = static_cast<RankSums*>(scratch);
    std::size_t left = scratch_bytes - kSumBytes;
    if (const cudaError_t status =
            sum_places(static_cast<char*>(scratch) + kSumBytes, left, body, count, result, stream_);
        status != cudaSuccess) {
      return error_of(status, "cub::DeviceReduce");
    }
    return download(&out, result, sizeof out);
  }

 private:
  template <class Body>
  DeviceError bulk(const Body& body, std::uint64_t count) {
    return error_of(cub::DeviceFor::Bulk(count, body, stream_), "kernel");
  }

  DeviceError copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (const cudaError_t status = cudaMemcpyAsync(to, from, bytes, kind, stream_); status != cudaSuccess) {
      return error_of(status, "cudaMemcpy");
    }
    return error_of(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  cudaStream_t stream_ = nullptr;
  cublasHandle_t blas_ = nullptr;
};

}  // namespace
}  // namespace eldr::calibrator::cuda

#define ELDR_EXPORT extern "C" __attribute__((visibility("default")))

ELDR_EXPORT const char* eldr_calibrate_cuda_interface() { return ELDR_CUDA_INTERFACE; }

ELDR_EXPORT eldr::calibrator::cuda::Device* eldr_calibrate_cuda_open(
    eldr::calibrator::cuda::DeviceError* error) {
  auto device = std::unique_ptr<eldr::calibrator::cuda::CudaDevice>(new (std::nothrow)
                                                                        eldr::calibrator::cuda::CudaDevice());
  if (device == nullptr) {
    error->kind = eldr::calibrator::cuda::DeviceError::kFailed;
    return nullptr;
  }
  *error = device->open();
  return *error ? nullptr : device.release();
}

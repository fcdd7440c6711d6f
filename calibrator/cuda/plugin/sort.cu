// SPDX-License-Identifier: Apache-2.0
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cuda/iterator>
#include <cuda/std/functional>

#include "calibrator/cuda/plugin/cuda_device.h"

namespace eldr::calibrator::cuda {

cudaError_t sort_by_key(void* scratch, std::size_t& scratch_bytes, SortBuffers& buffers, std::uint64_t count,
                        cudaStream_t stream) {
  cub::DoubleBuffer<std::uint32_t> keys(buffers.keys, buffers.other_keys);
  cub::DoubleBuffer<std::uint32_t> payload(buffers.payload, buffers.other_payload);
  const cudaError_t status =
      cub::DeviceRadixSort::SortPairs(scratch, scratch_bytes, keys, payload, count, 0, kKeyBits, stream);
  buffers = {keys.Current(), payload.Current(), keys.Alternate(), payload.Alternate()};
  return status;
}

cudaError_t sum_places(void* scratch, std::size_t& scratch_bytes, const PlaceSums& body, std::uint64_t count,
                       RankSums* out, cudaStream_t stream) {
  return cub::DeviceReduce::TransformReduce(scratch, scratch_bytes,
                                            ::cuda::counting_iterator<std::uint64_t>(0), out, count,
                                            ::cuda::std::plus<>{}, body, RankSums{0, 0}, stream);
}

}  // namespace eldr::calibrator::cuda

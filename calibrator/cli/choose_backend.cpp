// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cli/choose_backend.h"

#include <spdlog/spdlog.h>

namespace eldr::calibrator {
namespace {

Result<std::unique_ptr<FitBackend>> open_cuda_backend(const BackendOptions& options,
                                                      const cuda::PluginPlaces& places,
                                                      const cuda::FitShape& shape) {
  auto device =
      cuda::open_device(options.cuda_library.empty() ? places : cuda::PluginPlaces{options.cuda_library, ""});
  if (!device) {
    return failure(device.error());
  }
  cuda::DeviceFacts facts;
  if (const cuda::DeviceError error = (*device)->facts(facts)) {
    return failure(Code::kUnavailable, error.message);
  }
  auto backend = cuda::make_backend(std::move(*device), options.cuda_memory_limit << 20U, shape);
  if (backend) {
    spdlog::info("fitting on the GPU: {}, {} of {} MiB free", facts.name, facts.free_bytes >> 20U,
                 facts.total_bytes >> 20U);
  }
  return backend;
}

}  // namespace

Result<std::unique_ptr<FitBackend>> choose_backend(const BackendOptions& options,
                                                   const cuda::PluginPlaces& places,
                                                   const cuda::FitShape& shape, unsigned threads) {
  if (options.backend == "cpu") {
    return make_cpu_backend(threads);
  }
  auto backend = open_cuda_backend(options, places, shape);
  if (backend) {
    return backend;
  }
  if (options.backend == "cuda") {
    return failure(backend.error().with_context("--backend cuda"));
  }
  spdlog::info("fitting on the CPU: {}", backend.error().message);
  return make_cpu_backend(threads);
}

}  // namespace eldr::calibrator

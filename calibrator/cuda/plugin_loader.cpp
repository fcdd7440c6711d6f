// SPDX-License-Identifier: Apache-2.0
#include "calibrator/cuda/plugin_loader.h"

#include <filesystem>

#include <dlfcn.h>

#include "calibrator/cuda/plugin/plugin.h"

namespace eldr::calibrator::cuda {
namespace {

constexpr char kFileName[] = "libeldr_calibrate_cuda.so";

Result<std::string> find_plugin(const PluginPlaces& places) {
  if (!places.file.empty()) {
    return places.file;
  }
  const std::filesystem::path program(places.program_directory);
  for (const auto& file : {program / kFileName, program.parent_path() / "lib" / "eldr" / kFileName}) {
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) {
      return file.string();
    }
  }
  return failure(Code::kNotFound, std::string("no ") + kFileName + " beside the program or in ../lib/eldr");
}

/// The library's handle, which is never closed: CUDA does not unload cleanly, and it is needed to the end.
Result<void*> load(const std::string& file) {
  // A name without a slash would be searched for in the system's folders.
  const std::string path = std::filesystem::absolute(file).string();
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); library != nullptr) {
    return library;
  }
  return failure(Code::kInvalid, dlerror());
}

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

Status check_interface(void* library, const std::string& file) {
  const auto interface = symbol<InterfaceFunction>(library, kInterfaceSymbol);
  if (interface == nullptr) {
    return failure(Code::kInvalid, file + ": is not a CUDA backend of eldr-calibrate");
  }
  if (const std::string theirs = interface(); theirs != ELDR_CUDA_INTERFACE) {
    return failure(Code::kInvalid,
                   file + ": has interface " + theirs + "; this eldr-calibrate needs " ELDR_CUDA_INTERFACE);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Device>> open_device(const PluginPlaces& places) {
  const auto file = find_plugin(places);
  if (!file) {
    return failure(file.error());
  }
  const auto library = load(*file);
  if (!library) {
    return failure(library.error());
  }
  if (const Status same = check_interface(*library, *file); !same) {
    return failure(same.error());
  }
  const auto open = symbol<OpenFunction>(*library, kOpenSymbol);
  if (open == nullptr) {
    return failure(Code::kInvalid, *file + ": has no " + kOpenSymbol);
  }
  DeviceError error;
  std::unique_ptr<Device> device(open(&error));
  if (device == nullptr) {
    return failure(Code::kUnavailable, error.message);
  }
  return device;
}

}  // namespace eldr::calibrator::cuda

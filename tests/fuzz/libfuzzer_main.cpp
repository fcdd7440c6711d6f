// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry points for the one target that is linked in.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz_target.h"

namespace {

/// The target's seeds as files in a corpus folder, so that fuzzing starts from valid inputs.
void write_seeds(const std::filesystem::path& folder) {
  int number = 0;
  for (const auto& seed : eldr::fuzz::targets().front().seeds()) {
    std::ofstream file(folder / ("seed-" + std::to_string(number++)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(seed.data()), static_cast<std::streamsize>(seed.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string word = (*argv)[i];
    if (word.front() != '-' && std::filesystem::is_directory(word)) {
      write_seeds(word);
      break;
    }
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  eldr::fuzz::targets().front().run(std::as_bytes(std::span(data, size)));
  return 0;
}

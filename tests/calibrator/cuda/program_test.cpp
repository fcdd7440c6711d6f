// SPDX-License-Identifier: Apache-2.0
// --backend auto and cuda of the program itself, with CUDA backends that exist, do not fit, or are none.
#include "tests/calibrator/program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lib/signature/trace.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

class CudaProgram : public testing::Program {
 protected:
  testing::Ended fit(const std::string& backend, const std::string& library,
                     const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        "fit",       "--trace", at("trace.safetensors"), "--out", at("c"), "--clusters", "4", "--json",
        "--backend", backend};
    if (!library.empty()) {
      arguments.insert(arguments.end(), {"--cuda-library", library});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  /// "cuda" ends with 78 and the reason, "auto" fits on the CPU and says the same.
  void expect_fallback(const std::string& library, const std::string& reason,
                       const std::vector<std::string>& more = {}) const {
    const testing::Ended cuda = fit("cuda", library, more);
    EXPECT_EQ(cuda.exit, 78) << cuda.err;
    EXPECT_NE(cuda.err.find("--backend cuda: "), std::string::npos) << cuda.err;
    EXPECT_NE(cuda.err.find(reason), std::string::npos) << cuda.err;
    const testing::Ended automatic = fit("auto", library, more);
    EXPECT_EQ(automatic.exit, 0) << automatic.err;
    EXPECT_NE(automatic.err.find("fitting on the CPU: "), std::string::npos) << automatic.err;
    EXPECT_NE(automatic.err.find(reason), std::string::npos) << automatic.err;
  }
};

TEST_F(CudaProgram, SaysThatThereIsNoSuchLibrary) { expect_fallback(at("none.so"), "none.so"); }

TEST_F(CudaProgram, RefusesALibraryThatIsCorrupt) {
  std::ofstream(at("corrupt.so")) << "\177ELF and no more";
  expect_fallback(at("corrupt.so"), "corrupt.so: ");
  std::ofstream(at("empty.so")).flush();
  expect_fallback(at("empty.so"), "empty.so: file too short");
}

TEST_F(CudaProgram, RefusesALibraryThatIsNotABackend) {
  expect_fallback(ELDR_FOREIGN_PLUGIN, "is not a CUDA backend of eldr-calibrate");
}

TEST_F(CudaProgram, RefusesABackendOfAnotherBuildWithoutCallingIt) {
  expect_fallback(ELDR_OTHER_BUILD_PLUGIN, "has interface 0.0.9-0123456789ab; this eldr-calibrate needs ");
}

TEST_F(CudaProgram, SaysThatThereIsNoGpu) {
  expect_fallback(ELDR_NO_GPU_PLUGIN, "no NVIDIA driver is installed");
}

TEST_F(CudaProgram, SaysThatMemoryIsTooLittle) {
  ASSERT_TRUE(signature::save_trace(at("trace.safetensors"),
                                    samples::trace(1, {.requests = 400, .layers = 2, .prompt_tokens = 10})));
  expect_fallback(ELDR_EMULATED_PLUGIN, "400 requests needs at least 3 MiB; 1 MiB may be used",
                  {"--cuda-memory-limit", "1"});
}

TEST_F(CudaProgram, LooksBesideItselfAndInTheLibraryFolder) {
  // A copy of the program without a library, then with one in each place.
  namespace fs = std::filesystem;
  fs::create_directories(at("bin"));
  fs::copy_file(ELDR_CALIBRATE, at("bin/eldr-calibrate"));
  const auto says = [&] {
    testing::ChildOptions options;
    options.program = at("bin/eldr-calibrate");
    return run({"fit", "--trace", at("trace.safetensors"), "--out", at("c"), "--clusters", "2"}, options).err;
  };
  EXPECT_NE(says().find("no libeldr_calibrate_cuda.so beside the program or in ../lib/eldr"),
            std::string::npos);
  fs::create_directories(at("lib/eldr"));
  fs::copy_file(ELDR_EMULATED_PLUGIN, at("lib/eldr/libeldr_calibrate_cuda.so"));
  EXPECT_NE(says().find("fitting on the GPU: emulated"), std::string::npos);
  fs::copy_file(ELDR_OTHER_BUILD_PLUGIN, at("bin/libeldr_calibrate_cuda.so"));
  EXPECT_NE(says().find("has interface 0.0.9"), std::string::npos);
}

TEST_F(CudaProgram, GivesTheResultOfTheCpu) {
  const testing::Ended cpu = fit("cpu", "");
  const std::string centroids = testing::Child::read(at("c"));
  for (const char* backend : {"cuda", "auto"}) {
    const testing::Ended cuda = fit(backend, ELDR_EMULATED_PLUGIN);
    ASSERT_EQ(cuda.exit, 0) << cuda.err;
    EXPECT_NE(cuda.err.find("fitting on the GPU: emulated"), std::string::npos) << cuda.err;
    EXPECT_EQ(testing::Child::read(at("c")), centroids);
  }
}

TEST_F(CudaProgram, TakesTheLibraryFromTheEnvironment) {
  testing::ChildOptions options;
  options.prepare = [] { setenv("ELDR_CUDA_LIBRARY", ELDR_NO_GPU_PLUGIN, 1); };
  const testing::Ended ended = run(
      {"fit", "--trace", at("trace.safetensors"), "--out", at("c"), "--clusters", "2", "--backend", "cuda"},
      options);
  EXPECT_EQ(ended.exit, 78);
  EXPECT_NE(ended.err.find("no NVIDIA driver is installed"), std::string::npos) << ended.err;
}

TEST_F(CudaProgram, FindsTheBackendOfThisBuild) {
#ifdef ELDR_CUDA_PLUGIN
  const testing::Ended cuda = fit("cuda", "");
  // On a machine with a GPU it fits there; elsewhere it says which of the two is missing.
  if (cuda.exit == 0) {
    EXPECT_NE(cuda.err.find("fitting on the GPU: "), std::string::npos) << cuda.err;
  } else {
    EXPECT_EQ(cuda.exit, 78);
    EXPECT_TRUE(cuda.err.find("NVIDIA driver") != std::string::npos ||
                cuda.err.find("no GPU can be used") != std::string::npos)
        << cuda.err;
    EXPECT_EQ(fit("auto", "").exit, 0);
  }
#else
  GTEST_SKIP() << "the CUDA backend was not built: " ELDR_NO_CUDA_REASON;
#endif
}

}  // namespace
}  // namespace eldr::calibrator

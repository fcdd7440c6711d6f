// SPDX-License-Identifier: Apache-2.0
// Memory and disks that run out: the program ends with 75 and a message, never by a signal, and leaves no
// half file.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/signature/centroids.h"
#include "lib/signature/trace.h"
#include "tests/calibrator/engine_double.h"
#include "tests/calibrator/program.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator {
namespace {

using testing::Ended;
using testing::EngineDouble;
using testing::kSanitized;
using testing::Program;

std::function<void()> limited(int resource, rlim_t bytes) {
  return [resource, bytes] {
    const rlimit limit{bytes, bytes};
    setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  };
}

class Exhaustion : public Program {
 protected:
  std::vector<std::string> fit(const std::string& trace) const {
    return {"fit", "--trace", at(trace), "--clusters", "3", "--threads", "4", "--out", at("c.safetensors")};
  }
  std::vector<std::string> collect(const EngineDouble& engine) const {
    return {"collect",   "--model",           "test-moe",        "--engine", engine.url(),
            "--dataset", at("prompts.jsonl"), "--decode-tokens", "4000",     "--keep-decode-experts",
            "--out",     at("t.safetensors"), "--retries",       "0"};
  }
  /// Ends well, or with 75 and a reason and nothing but what may stay.
  void expect_all_or_nothing(const Ended& ended, const std::string& out, const std::string& reason) const {
    if (ended.exit == 0) {
      EXPECT_TRUE(std::filesystem::exists(out));
      return;
    }
    EXPECT_EQ(ended.exit, 75) << ended.err;
    EXPECT_NE(ended.err.find(reason), std::string::npos) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(out));
    for (const std::string& name : left_behind()) {
      EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
    }
  }
};

TEST_F(Exhaustion, FitWithAnyAmountOfMemory) {
  if (kSanitized) {
    GTEST_SKIP() << "address space cannot be limited under a sanitizer";
  }
  ASSERT_TRUE(signature::save_trace(at("large.safetensors"),
                                    samples::trace(2, {.requests = 1200, .layers = 12, .experts = 64})));
  int failed = 0;
  for (rlim_t mib = 80; mib <= 640; mib += 40) {
    const Ended ended = run(fit("large.safetensors"), {.prepare = limited(RLIMIT_AS, mib << 20U)});
    SCOPED_TRACE(std::to_string(mib) + " MiB");
    expect_all_or_nothing(ended, at("c.safetensors"), "memory");
    failed += ended.exit == 75 ? 1 : 0;
    std::filesystem::remove(at("c.safetensors"));
  }
  EXPECT_GT(failed, 0) << "the limits are too wide to show anything";
}

TEST_F(Exhaustion, CollectWithAnyAmountOfMemory) {
  if (kSanitized) {
    GTEST_SKIP() << "address space cannot be limited under a sanitizer";
  }
  EngineDouble engine;
  int failed = 0;
  for (rlim_t mib = 80; mib <= 400; mib += 20) {
    const Ended ended = run(collect(engine), {.prepare = limited(RLIMIT_AS, mib << 20U)});
    SCOPED_TRACE(std::to_string(mib) + " MiB");
    if (ended.err.find("Couldn't resolve host") != std::string::npos) {
      EXPECT_EQ(ended.exit, 69) << "libcurl had no room for its resolver's thread, and does not say so";
    } else {
      expect_all_or_nothing(ended, at("t.safetensors"), "memory");
    }
    failed += ended.exit == 75 ? 1 : 0;
    std::filesystem::remove(at("t.safetensors"));
    std::filesystem::remove(at("t.safetensors.partial"));
  }
  EXPECT_GT(failed, 0) << "the limits are too wide to show anything";
}

/// No write may go beyond so many bytes of a file: the reason is EFBIG, as the quota of a disk would be
/// EDQUOT.
TEST_F(Exhaustion, FilesThatMayNotGrow) {
  const Ended fitted = run(fit("trace.safetensors"), {.prepare = limited(RLIMIT_FSIZE, 1000)});
  EXPECT_EQ(fitted.exit, 75) << fitted.err;
  expect_all_or_nothing(fitted, at("c.safetensors"), "--out");

  EngineDouble engine;
  const Ended collected = run(collect(engine), {.prepare = limited(RLIMIT_FSIZE, 1'000'000)});
  EXPECT_EQ(collected.exit, 75) << collected.err;
  expect_all_or_nothing(collected, at("t.safetensors"), "resume file");
  // What was finished is not repeated where there is room.
  const std::size_t before = engine.completions();
  EXPECT_EQ(run(collect(engine)).exit, 0);
  EXPECT_LT(engine.completions() - before, 60U);
  EXPECT_GT(engine.completions() - before, 0U);

  const Ended copied = run({"collect", "--model", "test-moe", "--engine", engine.url(), "--dataset", "-",
                            "--out", at("t2.safetensors")},
                           {.input = at("prompts.jsonl"), .prepare = limited(RLIMIT_FSIZE, 1000)});
  EXPECT_EQ(copied.exit, 75) << copied.err;
  EXPECT_NE(copied.err.find("temporary file"), std::string::npos) << copied.err;
}

TEST_F(Exhaustion, StandardOutputThatIsFull) {
  for (const std::vector<std::string>& arguments :
       {fit("trace.safetensors"), std::vector<std::string>{"inspect", at("trace.safetensors")}}) {
    const Ended ended = run(arguments, {.output = "/dev/full"});
    EXPECT_EQ(ended.exit, 75) << ended.err;
    EXPECT_NE(ended.err.find("standard output"), std::string::npos) << ended.err;
  }
}

/// A disk of 16 KiB that only the child sees.
TEST_F(Exhaustion, ADiskThatIsFull) {
  std::filesystem::create_directory(at("disk"));
  const auto mount_disk = [folder = at("disk")] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", folder.c_str(), "tmpfs", 0, "size=16k") != 0) {
      _exit(99);
    }
  };
  const std::string disk = at("disk") + "/";
  const Ended tried = run({"--version"}, {.prepare = mount_disk});
  if (tried.exit == 99) {
    GTEST_SKIP() << "no right to mount a file system here";
  }
  const auto large = samples::trace(3, {.requests = 1000, .layers = 5, .experts = 256, .top_k = 4});
  ASSERT_TRUE(signature::save_trace(at("wide.safetensors"), large));
  const std::vector<std::string> wide = {"fit",        "--trace", at("wide.safetensors"), "--clusters",
                                         "100",        "--out",   disk + "c.safetensors", "--no-held-out",
                                         "--restarts", "1"};
  const Ended fitted = run(wide, {.prepare = mount_disk});
  EXPECT_EQ(fitted.exit, 75) << fitted.err;
  EXPECT_NE(fitted.err.find("No space left on device"), std::string::npos) << fitted.err;

  EngineDouble engine;
  const auto collect_to = [&](const std::string& out) {
    auto arguments = collect(engine);
    *(std::find(arguments.begin(), arguments.end(), "--out") + 1) = out;
    return run(arguments, {.prepare = mount_disk});
  };
  const Ended collected = collect_to(disk + "t.safetensors");
  EXPECT_EQ(collected.exit, 75) << collected.err;
  EXPECT_NE(collected.err.find("No space left on device"), std::string::npos) << collected.err;
}

TEST_F(Exhaustion, AFolderThatMayNotBeWritten) {
  const Ended ended = run({"fit", "--trace", at("trace.safetensors"), "--clusters", "3", "--out",
                           at("nowhere") + "/c.safetensors"});
  EXPECT_EQ(ended.exit, 66) << ended.err;
  EXPECT_NE(ended.err.find("--out"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace eldr::calibrator

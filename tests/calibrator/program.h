// SPDX-License-Identifier: Apache-2.0
// Running eldr-calibrate itself in a folder of its own.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

namespace eldr::calibrator::testing {

/// Sanitizers keep what is freed and need all of the address space: memory says nothing then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

struct Ended {
  int exit = -1;  ///< 128 + signal when one ended it
  std::string out;
  std::string err;
  long peak_kib = 0;  ///< largest resident memory
};

struct ChildOptions {
  std::string program = ELDR_CALIBRATE;
  std::string input = "/dev/null";
  std::string output = {};             ///< default: a file in the folder
  std::function<void()> prepare = {};  ///< in the child, before the program begins: limits
};

/// A child process. Output goes to files, so that it never blocks.
class Child {
 public:
  Child(const std::string& folder, std::vector<std::string> arguments, const ChildOptions& options = {});

  void signal(int number) const;
  Ended wait() const;
  static std::string read(const std::string& path);

 private:
  pid_t pid_;
  std::string out_;
  std::string err_;
};

/// A folder with a trace of 60 requests (trace.safetensors) and 60 prompts of three labels (prompts.jsonl).
class Program : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  Ended run(const std::vector<std::string>& arguments, const ChildOptions& options = {}) const {
    return Child(folder_, arguments, options).wait();
  }
  /// Files in the folder but for those the test made itself.
  std::set<std::string> left_behind() const;

  std::string folder_;
};

}  // namespace eldr::calibrator::testing

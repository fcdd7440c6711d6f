// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrator/program.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/signature/trace.h"
#include "tests/calibrator/samples.h"

namespace eldr::calibrator::testing {

Child::Child(const std::string& folder, std::vector<std::string> arguments, const ChildOptions& options) {
  out_ = options.output.empty() ? folder + "/out" : options.output;
  err_ = folder + "/err";
  arguments.insert(arguments.begin(), options.program);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open(options.input.c_str(), O_RDONLY), 0);
    dup2(open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
    dup2(open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    if (options.prepare) {
      options.prepare();
    }
    execv(argv[0], argv.data());
    _exit(127);
  }
}

void Child::signal(int number) const { kill(pid_, number); }

Ended Child::wait() const {
  int status = 0;
  rusage usage{};
  wait4(pid_, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(out_), read(err_),
          usage.ru_maxrss};
}

std::string Child::read(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    return {};
  }
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Program::SetUp() {
  folder_ = ::testing::TempDir() + "/eldr-program-" + std::to_string(getpid()) + "-" +
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder_);
  ASSERT_TRUE(signature::save_trace(at("trace.safetensors"), samples::trace(1, {.requests = 60})));
  std::ofstream prompts(at("prompts.jsonl"));
  for (int i = 0; i < 60; ++i) {
    const std::string label(1, static_cast<char>('a' + i % 3));
    prompts << nlohmann::json({{"prompt", label + " prompt number " + std::to_string(i)}, {"label", label}})
                   .dump()
            << '\n';
  }
}

void Program::TearDown() { std::filesystem::remove_all(folder_); }

std::set<std::string> Program::left_behind() const {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    names.insert(entry.path().filename().string());
  }
  for (const char* known : {"trace.safetensors", "prompts.jsonl", "out", "err"}) {
    names.erase(known);
  }
  return names;
}

}  // namespace eldr::calibrator::testing

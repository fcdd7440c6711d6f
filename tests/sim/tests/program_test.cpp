// SPDX-License-Identifier: Apache-2.0
// The program: command line, exit codes, signals.
#include <array>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/http/client.h"
#include "tests/sim/options.h"

namespace eldr::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

CommandLine parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "eldr-sim-worker");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

TEST(CommandLine, ReadsWhatItNeeds) {
  const auto line =
      parse({"--role=prefill", "--listen", "[::]:81", "--model", "a/b", "--layers", "3", "--first-layer", "2",
             "--lease-seconds", "0.5", "--fault", "slow:factor=2", "--fault=no-eldr"});
  ASSERT_TRUE(line.options) << line.text;
  EXPECT_EQ(line.options->worker.role, Role::kPrefill);
  EXPECT_EQ(line.options->server.address, "::");
  EXPECT_EQ(line.options->server.port, 81);
  EXPECT_EQ(line.options->shape.layers, (std::vector<std::int32_t>{2, 3, 4}));
  EXPECT_EQ(line.options->worker.lease, 500ms);
  EXPECT_EQ(line.options->worker.faults.size(), 2U);
}

TEST(CommandLine, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(parse({"--help"}).code, 0);
  EXPECT_THAT(parse({"--help"}).text, HasSubstr("--time-scale"));
  EXPECT_EQ(parse({"--version"}).code, 0);
  EXPECT_THAT(parse({"--version"}).text, HasSubstr("eldr-sim-worker "));
}

TEST(CommandLine, SaysWhatIsWrong) {
  const struct {
    std::vector<const char*> arguments;
    const char* named;
  } cases[] = {{{"--role", "router"}, "--role"},
               {{"--listen", "x"}, "--listen"},
               {{"--top-k", "9", "--experts", "8"}, "--top-k 9"},
               {{"--fault", "boom"}, "--fault"},
               {{"--layers", "0"}, "--layers"},
               {{"--time-scale", "0"}, "--time-scale"},
               {{"--no-such-option"}, "no-such"}};
  for (const auto& c : cases) {
    const auto line = parse(c.arguments);
    EXPECT_FALSE(line.options) << c.named;
    EXPECT_EQ(line.code, 64) << c.named;
    EXPECT_THAT(line.text, HasSubstr(c.named));
  }
}

// The program in a process of its own; its log goes to a pipe.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), std::string(ELDR_BINARY_DIR) + "/bin/eldr-sim-worker");
    std::vector<char*> argv;
    for (auto& a : arguments) {
      argv.push_back(a.data());
    }
    argv.push_back(nullptr);
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    log_ = ends[0];
  }
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    ::close(log_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The port that the log names.
  std::uint16_t port() {
    std::string text;
    char c = 0;
    while (::read(log_, &c, 1) == 1) {
      text += c;
      const auto at = text.find("on port ");
      if (at != std::string::npos && text.back() == ',') {
        return static_cast<std::uint16_t>(std::stoi(text.substr(at + 8)));
      }
    }
    ADD_FAILURE() << text;
    return 0;
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Exit code, or 128 + signal.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int log_ = -1;
};

TEST(Program, DrainsOnSigtermAndExits0) {
  Process process({"--listen=127.0.0.1:0", "--model=m", "--time-scale=5"});
  const std::uint16_t port = process.port();
  std::atomic<bool> begun{false};
  Result<http::ClientResponse> answer;
  std::thread client([&] {
    answer = http::fetch({"127.0.0.1",
                          port,
                          "POST",
                          "/v1/completions",
                          {},
                          R"({"prompt":"def f():","max_tokens":60,"ignore_eos":true,"stream":true})"},
                         {20s}, [&](std::string_view) {
                           begun = true;
                           return true;
                         });
    begun = true;
  });
  while (!begun) {
    std::this_thread::sleep_for(2ms);
  }
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
  client.join();
  EXPECT_TRUE(answer) << answer.error().message;
}

TEST(Program, GoesOnListeningForTheLameDuckTime) {
  Process process({"--listen=127.0.0.1:0", "--lame-duck-seconds=0.4"});
  const std::uint16_t port = process.port();
  process.signal(SIGTERM);
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(http::fetch({"127.0.0.1", port, "GET", "/health"}));
  EXPECT_EQ(process.wait(), 0);
}

TEST(Program, DiesOnDemand) {
  Process process({"--listen=127.0.0.1:0"});
  const std::uint16_t port = process.port();
  EXPECT_FALSE(http::fetch({"127.0.0.1", port, "POST", "/sim/fault", {}, R"({"kind":"die"})"}));
  EXPECT_EQ(process.wait(), 137);
}

TEST(Program, SaysWhenATraceIsMissingOrThePortIsTaken) {
  EXPECT_EQ(Process({"--trace", "/nonexistent/trace", "--listen=127.0.0.1:0"}).wait(), 66);
  Process first({"--listen=127.0.0.1:0"});
  EXPECT_EQ(Process({"--listen=127.0.0.1:" + std::to_string(first.port())}).wait(), 69);
}

}  // namespace
}  // namespace eldr::sim

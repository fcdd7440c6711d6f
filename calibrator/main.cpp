// SPDX-License-Identifier: Apache-2.0
// eldr-calibrate: what only a main() may do. The rest is calibrator/cli/program.h.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <stop_token>
#include <system_error>
#include <thread>

#include <unistd.h>

#include "calibrator/cli/available_cpus.h"
#include "calibrator/cli/program.h"
#include "calibrator/collect/curl_transport.h"
#include "lib/base/exit_code.h"
#include "lib/kube/cpprest_transport.h"

namespace {

/// Turns SIGTERM and SIGINT into a stop request, on a thread of its own. The signals must be blocked in all
/// threads. A second signal ends the process at once.
class SignalWatch {
 public:
  explicit SignalWatch(const sigset_t& signals)
      : thread_([this, signals](const std::stop_token& over) {
          for (;;) {
            const int number = sigwaitinfo(&signals, nullptr);
            if (over.stop_requested()) {
              return;
            }
            if (number > 0 && !source_.request_stop()) {
              std::_Exit(128 + SIGTERM);
            }
          }
        }) {}
  ~SignalWatch() {
    thread_.request_stop();
    pthread_kill(thread_.native_handle(), SIGTERM);  // wakes it
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

/// The folder of this very file, wherever it was called from; empty where the system does not say.
std::string program_directory() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path().string();
}

/// Some libraries need memory to free memory: without any, the destructor of a JSON value throws, which
/// nobody can catch.
[[noreturn]] void end_on_uncaught() {
  try {
    if (const auto exception = std::current_exception()) {
      std::rethrow_exception(exception);
    }
  } catch (const std::bad_alloc&) {
    std::fputs("eldr-calibrate: out of memory\n", stderr);
    std::_Exit(eldr::kExitTryAgain);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "eldr-calibrate: %s\n", error.what());
  }
  std::abort();
}

int run(int argc, char** argv) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // before any thread exists
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit is then an error of write()
  eldr::kube::init_http_threads();
  eldr::calibrator::init_curl();

  const SignalWatch watch(signals);
  const char* temp = std::getenv("TMPDIR");
  const char* cuda_library = std::getenv("ELDR_CUDA_LIBRARY");
  const eldr::calibrator::ProcessFacts process{
      .temp_directory = temp != nullptr && *temp != 0 ? temp : "/tmp",
      .cpus = eldr::calibrator::available_cpus(),
      .terminal = isatty(STDERR_FILENO) == 1,
      .kube_environment = eldr::kube::environment_of_process(),
      .cuda_plugin = {.file = cuda_library != nullptr ? cuda_library : "",
                      .program_directory = program_directory()}};
  const eldr::RealClock clock;
  return eldr::calibrator::run_program(argc, argv, process, clock, watch.token(), std::cout);
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(end_on_uncaught);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {  // before a command began: those report it themselves
    std::fputs("eldr-calibrate: out of memory\n", stderr);
  } catch (const std::system_error& error) {  // no room for a thread
    std::fprintf(stderr, "eldr-calibrate: %s\n", error.what());
  }
  return eldr::kExitTryAgain;
}

// SPDX-License-Identifier: Apache-2.0
// A small engine for tests: answers as vLLM does with --enable-return-routed-experts, or wrongly when told
// to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/http/server.h"

namespace eldr::calibrator::testing {

/// Bytes of a .npy file; `ids` is [shape[0]][shape[1]][shape[2]]. `descr` is "|u1" or "<u2".
std::string npy(const std::string& descr, const std::vector<std::size_t>& shape,
                const std::vector<std::uint16_t>& ids);

class EngineDouble {
 public:
  static constexpr std::size_t kLayers = 3;
  static constexpr std::size_t kTopK = 2;
  static constexpr std::uint32_t kExperts = 16;

  /// Asked before a completion is answered; returns true when it has answered itself. `number` counts from 1.
  using Intercept = std::function<bool(std::size_t number, const http::Request&, http::ResponseWriter&)>;

  explicit EngineDouble(std::string model = "test-moe", Intercept intercept = {});
  ~EngineDouble();

  /// Experts of a prompt's tokens and the generated ones [rows][kLayers][kTopK]. They follow its first
  /// character.
  static std::vector<std::uint16_t> ids_of(const std::string& prompt, std::size_t rows);

  std::string url() const;
  std::size_t completions() const { return completions_; }
  std::size_t most_in_flight() const { return most_in_flight_; }
  std::vector<std::string> bodies() const;
  void set_healthy(bool healthy) { healthy_ = healthy; }
  void stop();

 private:
  void handle(const http::Request& request, http::ResponseWriter& answer);

  std::string model_;
  Intercept intercept_;
  std::atomic<bool> healthy_{true};
  std::atomic<std::size_t> completions_{0};
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<std::size_t> most_in_flight_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> bodies_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace eldr::calibrator::testing

// SPDX-License-Identifier: Apache-2.0
#include "lib/base/log.h"

#include <memory>

#include <nlohmann/json.hpp>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ansicolor_sink.h>

namespace eldr {
namespace {

/// %J: the message as a JSON string. spdlog's own %v does not escape.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& msg, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = nlohmann::json(std::string(msg.payload.data(), msg.payload.size()))
                                 .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<JsonMessage>();
  }
};

}  // namespace

Status init_logging(const std::string& program, const std::string& format, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return failure(Code::kInvalid,
                   "log level \"" + level + "\": must be trace, debug, info, warn, error or off");
  }
  auto logger =
      std::make_shared<spdlog::logger>(program, std::make_shared<spdlog::sinks::ansicolor_stderr_sink_mt>());
  if (format == "json") {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<JsonMessage>('J').set_pattern(
        R"({"ts":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","logger":"%n","msg":%J})");
    logger->set_formatter(std::move(formatter));
  } else if (format == "text") {
    logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%-5l%$ %v");
  } else {
    return failure(Code::kInvalid, "log format \"" + format + "\": must be text or json");
  }
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

}  // namespace eldr

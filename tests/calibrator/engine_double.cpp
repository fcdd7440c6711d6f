// SPDX-License-Identifier: Apache-2.0
#include "tests/calibrator/engine_double.h"

#include <nlohmann/json.hpp>

#include "lib/base/digest.h"

namespace eldr::calibrator::testing {

using nlohmann::json;

std::string npy(const std::string& descr, const std::vector<std::size_t>& shape,
                const std::vector<std::uint16_t>& ids) {
  std::string extents;
  for (const std::size_t extent : shape) {
    extents += std::to_string(extent) + ", ";
  }
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + extents + "), }";
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFFU);
  bytes += static_cast<char>(header.size() >> 8U);
  bytes += header;
  for (const std::uint16_t id : ids) {
    bytes += static_cast<char>(id & 0xFFU);
    if (descr == "<u2") {
      bytes += static_cast<char>(id >> 8U);
    }
  }
  return bytes;
}

std::vector<std::uint16_t> EngineDouble::ids_of(const std::string& prompt, std::size_t rows) {
  std::vector<std::uint16_t> ids;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const std::size_t first = (static_cast<unsigned char>(prompt.front()) + layer + row % 3) % kExperts;
      ids.push_back(static_cast<std::uint16_t>(first));
      ids.push_back(static_cast<std::uint16_t>((first + 1 + row % 2) % kExperts));
    }
  }
  return ids;
}

EngineDouble::EngineDouble(std::string model, Intercept intercept)
    : model_(std::move(model)), intercept_(std::move(intercept)) {
  server_ = http::Server::listen({}, [this](const http::Request& request, http::ResponseWriter& answer) {
              handle(request, answer);
            }).value();
}

EngineDouble::~EngineDouble() { stop(); }

void EngineDouble::stop() { server_->stop(std::chrono::milliseconds(0)); }

std::string EngineDouble::url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

std::vector<std::string> EngineDouble::bodies() const {
  const std::lock_guard lock(mutex_);
  return bodies_;
}

void EngineDouble::handle(const http::Request& request, http::ResponseWriter& answer) {
  if (request.path == "/health") {
    answer.respond(healthy_ ? 200 : 503, "text/plain", "");
    return;
  }
  if (request.path == "/v1/models") {
    answer.respond(200, "application/json", json({{"object", "list"}, {"data", {{{"id", model_}}}}}).dump());
    return;
  }
  const std::size_t number = ++completions_;
  most_in_flight_ = std::max<std::size_t>(most_in_flight_, ++in_flight_);
  {
    const std::lock_guard lock(mutex_);
    bodies_.push_back(request.body);
  }
  if (!intercept_ || !intercept_(number, request, answer)) {
    const json body = json::parse(request.body);
    // One token a character.
    const std::string text = body.contains("prompt") ? body["prompt"].get<std::string>()
                                                     : body["messages"][0]["content"].get<std::string>();
    const std::size_t generated = body["max_tokens"].get<std::size_t>();
    const std::size_t rows = text.size() + generated - 1;
    const std::string file = npy("|u1", {rows, kLayers, kTopK}, ids_of(text, rows));
    answer.respond(
        200, "application/json",
        json({{"choices", {{{"index", 0}, {"text", "x"}, {"routed_experts", base64_encode(as_bytes(file))}}}},
              {"usage", {{"prompt_tokens", text.size()}, {"completion_tokens", generated}}}})
            .dump());
  }
  --in_flight_;
}

}  // namespace eldr::calibrator::testing

// SPDX-License-Identifier: Apache-2.0
#include "tests/kube/request_target.h"

#include <sstream>
#include <vector>

#include "lib/kube/object.h"

namespace eldr::kube::testing {
namespace {

std::string decoded(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

RequestTarget parse_target(const std::string& target) {
  RequestTarget parsed;
  const auto question = target.find('?');
  if (question != std::string::npos) {
    for (const std::string& pair : split(target.substr(question + 1), '&')) {
      const auto equals = pair.find('=');
      parsed.query[pair.substr(0, equals)] =
          equals == std::string::npos ? "" : decoded(pair.substr(equals + 1));
    }
  }
  const auto parts =
      split(target.substr(1, question == std::string::npos ? std::string::npos : question - 1), '/');
  std::size_t at = parts.at(0) == "api" ? 2 : 3;
  parsed.api_version = at == 2 ? parts.at(1) : parts.at(1) + "/" + parts.at(2);
  if (at + 2 < parts.size() && parts[at] == "namespaces") {
    parsed.key.ns = parts[at + 1];
    at += 2;
  }
  parsed.plural = at < parts.size() ? parts[at] : "";
  parsed.key.name = at + 1 < parts.size() ? decoded(parts[at + 1]) : "";
  parsed.subresource = at + 2 < parts.size() ? parts[at + 2] : "";
  return parsed;
}

bool selected(const std::string& selector, const Json& object) {
  for (const std::string& term : split(selector, ',')) {
    const auto equals = term.find('=');
    const auto label = label_of(object, term.substr(0, equals));
    if (!label || (equals != std::string::npos && *label != term.substr(equals + 1))) {
      return false;
    }
  }
  return true;
}

}  // namespace eldr::kube::testing

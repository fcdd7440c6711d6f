// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

namespace eldr::sim {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 12> kKinds{"none",         "slow",      "hang",    "drop",
                                                  "error-500",    "error-503", "no-eldr", "bad-eldr",
                                                  "no-kv-params", "unhealthy", "refuse",  "die"};
constexpr std::array<std::string_view, 11> kForms{"base64",  "short",    "long", "dtype", "version", "layers",
                                                  "experts", "coverage", "type", "null",  "zero"};

template <class List>
std::string join(const List& list) {
  std::string text;
  for (const auto& item : list) {
    text += (text.empty() ? "" : ", ") + std::string(item);
  }
  return text;
}

template <class List>
bool contains(const List& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

Status assign(Fault& fault, const std::string& name, const json& value) {
  const auto wrong = [&](const std::string& allowed) {
    return failure(Code::kInvalid, "fault option " + name + "=" + value.dump() + ": allowed is " + allowed);
  };
  if (name == "kind") {
    if (!value.is_string() || !contains(kKinds, value.get<std::string>())) {
      return wrong("one of " + join(kKinds));
    }
    fault.kind = value.get<std::string>();
    return {};
  }
  if (name == "form") {
    if (!value.is_string() || !contains(kForms, value.get<std::string>())) {
      return wrong("one of " + join(kForms));
    }
    fault.form = value.get<std::string>();
    return {};
  }
  if (name != "factor" && name != "seconds" && name != "after" && name != "count" && name != "every") {
    return failure(Code::kInvalid, "fault option \"" + name +
                                       "\": allowed are kind, form, factor, seconds, after, count, every");
  }
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!(number >= 0 && number <= 1e6)) {
    return wrong("a number from 0 to 1000000");
  }
  const auto whole = static_cast<std::uint32_t>(number);
  if (name == "factor") {
    fault.factor = number;
  } else if (name == "seconds") {
    fault.seconds = number;
  } else if (name == "after") {
    fault.after = whole;
    fault.has_after = true;
  } else if (name == "count") {
    fault.count = whole;
  } else {
    if (whole == 0) {
      return wrong("1 or more");
    }
    fault.every = whole;
  }
  return {};
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
  json object = json::object();
  const auto colon = text.find(':');
  object["kind"] = std::string(text.substr(0, colon));
  std::string_view rest = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const auto equals = item.find('=');
    if (equals == std::string_view::npos) {
      return failure(Code::kInvalid,
                     "fault \"" + std::string(text) + "\": allowed is KIND or KIND:NAME=VALUE,…");
    }
    const std::string_view value = item.substr(equals + 1);
    double number = 0;
    const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool numeric = ec == std::errc{} && end == value.data() + value.size();
    object[std::string(item.substr(0, equals))] = numeric ? json(number) : json(std::string(value));
  }
  return parse_fault_json(object.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<Fault> parse_fault_json(std::string_view body) {
  const json object = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("kind")) {
    return failure(Code::kInvalid, "fault: expected an object with \"kind\", one of " + join(kKinds));
  }
  Fault fault;
  for (const auto& [name, value] : object.items()) {
    if (const Status status = assign(fault, name, value); !status) {
      return failure(status.error());
    }
  }
  return fault;
}

void FaultBoard::set(const Fault& fault) {
  const std::lock_guard lock(mutex_);
  if (fault.kind == "none") {
    armed_.clear();
  } else {
    armed_[fault.kind] = Armed{fault};
  }
}

std::optional<Fault> FaultBoard::look(const std::string& kind) const {
  const std::lock_guard lock(mutex_);
  const auto it = armed_.find(kind);
  return it == armed_.end() ? std::nullopt : std::optional(it->second.fault);
}

std::optional<Fault> FaultBoard::strike(const std::string& kind) {
  const std::lock_guard lock(mutex_);
  const auto it = armed_.find(kind);
  if (it == armed_.end() || ++it->second.seen % it->second.fault.every != 0) {
    return std::nullopt;
  }
  const Fault fault = it->second.fault;
  if (fault.count > 0 && ++it->second.struck >= fault.count) {
    armed_.erase(it);
  }
  return fault;
}

std::map<std::string, Fault> FaultBoard::all() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, Fault> faults;
  for (const auto& [kind, armed] : armed_) {
    faults.emplace(kind, armed.fault);
  }
  return faults;
}

}  // namespace eldr::sim

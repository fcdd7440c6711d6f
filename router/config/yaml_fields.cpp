// SPDX-License-Identifier: Apache-2.0
#include "router/config/yaml_fields.h"

#include <charconv>
#include <cmath>

namespace eldr::router {
namespace {

std::string describe(const YAML::Node& node) {
  if (!node || node.IsNull()) return "null";
  if (node.IsScalar()) return '"' + node.Scalar() + '"';
  return node.IsSequence() ? "a list" : "a mapping";
}

/// As short as it reads best: 1, 0.5, 65535.
std::string shown(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

}  // namespace

YamlFields::YamlFields(YAML::Node node, std::string path) : node_(std::move(node)), path_(std::move(path)) {
  if (node_ && !node_.IsNull() && !node_.IsMap())
    status_ = failure(Code::kInvalid, (path_.empty() ? std::string("document") : path_) + ": " +
                                          describe(node_) + " is not allowed, expected a mapping");
  std::set<std::string> seen;
  if (status_ && node_.IsMap())
    for (const auto& entry : node_)
      if (entry.first.IsScalar() && !seen.insert(entry.first.Scalar()).second)
        fail(Error{Code::kInvalid, path_of(entry.first.Scalar()) + ": given twice", 0});
}

std::string YamlFields::path_of(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

bool YamlFields::has(const std::string& name) const {
  return node_.IsMap() && node_[name] && !node_[name].IsNull();
}

void YamlFields::fail(Error error) {
  if (status_) status_ = failure(std::move(error));
}

void YamlFields::fail(const std::string& name, const std::string& value, const std::string& allowed) {
  fail(Error{Code::kInvalid, path_of(name) + ": \"" + value + "\" is not allowed, expected " + allowed, 0});
}

std::string YamlFields::scalar(const std::string& name) {
  known_.insert(name);
  if (!status_ || !has(name)) return {};
  const auto node = node_[name];
  if (!node.IsScalar()) {
    fail(Error{Code::kInvalid, path_of(name) + ": " + describe(node) + " is not allowed, expected a value",
               0});
    return {};
  }
  return node.Scalar();
}

void YamlFields::text(const std::string& name, std::string& into) {
  const bool there = has(name);
  auto value = scalar(name);
  if (status_ && there) into = std::move(value);
}

void YamlFields::integer(const std::string& name, std::int64_t low, std::int64_t high,
                         const std::function<void(std::int64_t)>& set) {
  const auto value = scalar(name);
  if (value.empty()) return;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < low || number > high)
    return fail(name, value, "an integer from " + std::to_string(low) + " to " + std::to_string(high));
  set(number);
}

void YamlFields::number(const std::string& name, double low, double high,
                        const std::function<void(double)>& set) {
  const auto value = scalar(name);
  if (value.empty()) return;
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || !std::isfinite(number) || number < low ||
      number > high)
    return fail(name, value, "a number from " + shown(low) + " to " + shown(high));
  set(number);
}

void YamlFields::section(const std::string& name, const std::function<void(YamlFields&)>& read) {
  known_.insert(name);
  if (!status_ || !has(name)) return;
  YamlFields inner(node_[name], path_of(name));
  read(inner);
  if (auto status = inner.finish(); !status) status_ = status;
}

void YamlFields::list(const std::string& name, std::size_t max,
                      const std::function<void(const YAML::Node&, const std::string&)>& read) {
  known_.insert(name);
  if (!status_ || !has(name)) return;
  const auto node = node_[name];
  if (!node.IsSequence())
    return fail(
        Error{Code::kInvalid, path_of(name) + ": " + describe(node) + " is not allowed, expected a list", 0});
  if (node.size() > max)
    return fail(name, std::to_string(node.size()) + " elements", "at most " + std::to_string(max));
  for (std::size_t i = 0; i < node.size() && status_; ++i)
    read(node[i], path_of(name) + "[" + std::to_string(i) + "]");
}

Status YamlFields::finish() {
  if (!status_ || !node_.IsMap()) return status_;
  for (const auto& entry : node_) {
    const std::string name = entry.first.IsScalar() ? entry.first.Scalar() : describe(entry.first);
    if (known_.count(name) != 0) continue;
    std::string allowed;
    for (const auto& known : known_) (allowed += allowed.empty() ? "" : ", ") += known;
    return failure(Code::kInvalid, path_of(name) + ": unknown field, expected one of " + allowed);
  }
  return status_;
}

Status read_yaml(std::string_view text, const std::function<void(YamlFields&)>& read) {
  try {
    YamlFields fields(YAML::Load(std::string(text)), "");
    read(fields);
    return fields.finish();
  } catch (const YAML::Exception& error) {
    return failure(Code::kInvalid, "not valid YAML at line " + std::to_string(error.mark.line + 1) +
                                       ", column " + std::to_string(error.mark.column + 1) + ": " +
                                       error.msg);
  }
}

}  // namespace eldr::router

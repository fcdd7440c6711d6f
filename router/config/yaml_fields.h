// SPDX-License-Identifier: Apache-2.0
// Typed reading of a YAML mapping: every field is asked for by name, what nobody asked for is refused, and
// every error carries the field's path, the value and what is allowed. yaml-cpp's exceptions stop here.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "lib/base/status.h"

namespace eldr::router {

/// One mapping of the document. The first error is kept, later reads do nothing; call finish() last.
class YamlFields {
 public:
  /// `path` is "" for the document, "routing" for a section. A null node reads as an empty mapping.
  YamlFields(YAML::Node node, std::string path);

  bool has(const std::string& name) const;  ///< there and not null
  void text(const std::string& name, std::string& into);
  /// An integer in [low, high].
  void integer(const std::string& name, std::int64_t low, std::int64_t high,
               const std::function<void(std::int64_t)>& set);
  /// A finite number in [low, high]; the empty string counts as absent.
  void number(const std::string& name, double low, double high, const std::function<void(double)>& set);
  /// One of the names in `choices`.
  template <class T>
  void choice(const std::string& name, std::initializer_list<T> choices, T& into) {
    std::string allowed;
    bool found = false;
    const std::string value = scalar(name);
    if (value.empty()) return;
    for (const T candidate : choices) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(name_of(candidate));
      if (name_of(candidate) == value) {
        into = candidate;
        found = true;
      }
    }
    if (!found) fail(name, value, "one of " + allowed);
  }
  /// A nested mapping, read by `read`; absent: not called.
  void section(const std::string& name, const std::function<void(YamlFields&)>& read);
  /// A list, each element given to `read` with its path, e.g. "decode[2]"; absent: not called.
  void list(const std::string& name, std::size_t max,
            const std::function<void(const YAML::Node&, const std::string& path)>& read);

  void fail(const std::string& name, const std::string& value, const std::string& allowed);
  void fail(Error error);
  /// The first error, or an unknown field.
  Status finish();
  std::string path_of(const std::string& name) const;

 private:
  std::string scalar(const std::string& name);  ///< "" when absent, null, or after an error

  YAML::Node node_;
  std::string path_;
  std::set<std::string> known_;
  Status status_;
};

/// kInvalid with line and column. `read` gets the document's mapping; its finish() is called here.
Status read_yaml(std::string_view text, const std::function<void(YamlFields&)>& read);

}  // namespace eldr::router

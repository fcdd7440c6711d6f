// SPDX-License-Identifier: Apache-2.0
// One list of fields for each type, visited by a reader and by a writer, so that what is read and what is
// written cannot differ. Private to operator/api.
//
//   template <class V> void fields(V& v, ConfigMapKey& x) { v("name", x.name); v("key", x.key); }
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "lib/kube/json.h"

namespace eldr::op {

/// Fills a value from JSON. A wrong type is recorded with its path and leaves the value as it was.
class FieldReader {
 public:
  using Json = kube::Json;
  FieldReader(const Json& object, std::string path, std::vector<std::string>& errors)
      : object_(object), path_(std::move(path)), errors_(errors) {}

  template <class T>
  void operator()(const char* name, T& value) {
    const auto found = object_.find(name);
    if (found == object_.end() || found->is_null()) return;
    read(*found, path_ + "." + name, value);
  }

 private:
  void wrong(const std::string& path, const Json& found, const char* wanted) {
    std::string text = found.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (text.size() > 80) text = text.substr(0, 80) + "…";
    errors_.push_back(path + ": found " + text + ", want " + wanted);
  }
  void read(const Json& j, const std::string& path, std::string& value) {
    if (!j.is_string()) return wrong(path, j, "a string");
    value = j.get<std::string>();
  }
  void read(const Json& j, const std::string& path, std::int64_t& value) {
    if (!j.is_number_integer()) return wrong(path, j, "an integer");
    value = j.get<std::int64_t>();
  }
  void read(const Json& j, const std::string& path, bool& value) {
    if (!j.is_boolean()) return wrong(path, j, "true or false");
    value = j.get<bool>();
  }
  void read(const Json& j, const std::string& path, Json& value) {
    if (!j.is_structured()) return wrong(path, j, "an object or a list");
    value = j;
  }
  template <class T>
  void read(const Json& j, const std::string& path, std::optional<T>& value) {
    T inner{};
    const std::size_t before = errors_.size();
    read(j, path, inner);
    if (errors_.size() == before) value = std::move(inner);
  }
  template <class T>
  void read(const Json& j, const std::string& path, std::vector<T>& value) {
    if (!j.is_array()) return wrong(path, j, "a list");
    value.clear();
    for (std::size_t i = 0; i < j.size(); ++i) {
      T element{};
      read(j[i], path + "[" + std::to_string(i) + "]", element);
      value.push_back(std::move(element));
    }
  }
  void read(const Json& j, const std::string& path, std::map<std::string, std::string>& value) {
    if (!j.is_object()) return wrong(path, j, "an object");
    value.clear();
    for (const auto& [key, item] : j.items()) read(item, path + "." + key, value[key]);
  }
  template <class T>
  void read(const Json& j, const std::string& path, T& value) {
    if (!j.is_object()) return wrong(path, j, "an object");
    FieldReader inner(j, path, errors_);
    fields(inner, value);
  }

  const Json& object_;
  std::string path_;
  std::vector<std::string>& errors_;
};

/// Makes JSON from a value. Absent optionals, empty texts and empty containers are left out.
class FieldWriter {
 public:
  using Json = kube::Json;
  template <class T>
  void operator()(const char* name, const T& value) {
    Json made = write(value);
    if (!made.is_null()) object_[name] = std::move(made);
  }
  Json take() && { return std::move(object_); }

  template <class T>
  static Json object_of(const T& value) {
    FieldWriter inner;
    fields(inner, const_cast<T&>(value));  // fields() is shared with the reader; a writer changes nothing
    return std::move(inner).take();
  }

 private:
  static Json write(const std::string& value) { return value.empty() ? Json() : Json(value); }
  static Json write(const std::int64_t& value) { return value; }
  static Json write(const bool& value) { return value; }
  static Json write(const Json& value) { return value; }
  template <class T>
  static Json write(const std::optional<T>& value) {
    return value ? write(*value) : Json();
  }
  template <class T>
  static Json write(const std::vector<T>& value) {
    if (value.empty()) return {};
    Json list = Json::array();
    for (const T& element : value) list.push_back(write(element));
    return list;
  }
  static Json write(const std::map<std::string, std::string>& value) {
    return value.empty() ? Json() : Json(value);
  }
  template <class T>
  static Json write(const T& value) {
    return object_of(value);
  }

  Json object_ = Json::object();
};

}  // namespace eldr::op

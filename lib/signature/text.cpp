// SPDX-License-Identifier: Apache-2.0
#include "lib/signature/text.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

namespace eldr::signature {
namespace {

constexpr std::size_t kMaxQuoted = 80;

/// A flat JSON list of one kind of item, read without building a tree, so that depth and memory stay bounded.
class ListReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit ListReader(std::size_t max_items) : max_items_(max_items) {}

  bool null() override { return refuse("null is not allowed"); }
  bool boolean(bool) override { return refuse("true and false are not allowed"); }
  bool number_integer(number_integer_t) override { return refuse("a number is not allowed"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number is not allowed"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a fraction is not allowed"); }
  bool string(string_t&) override { return refuse("a string is not allowed"); }
  bool binary(binary_t&) override { return refuse("binary is not allowed"); }
  bool start_object(std::size_t) override { return refuse("an object is not allowed"); }
  bool key(string_t&) override { return refuse("an object is not allowed"); }
  bool end_object() override { return refuse("an object is not allowed"); }
  bool start_array(std::size_t) override {
    if (open_) return refuse("a list within the list is not allowed");
    open_ = true;
    return true;
  }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    return refuse("not JSON at byte " + std::to_string(position));
  }

  /// Empty when all is well.
  const std::string& reason() const { return reason_; }

 protected:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }
  bool admit(std::size_t have) {
    if (!open_) return refuse("must be a JSON list");
    return have < max_items_ || refuse("more than " + std::to_string(max_items_) + " items");
  }

 private:
  std::size_t max_items_;
  bool open_ = false;
  std::string reason_;
};

class IntListReader final : public ListReader {
 public:
  using ListReader::ListReader;
  bool number_integer(number_integer_t value) override {
    if (!admit(values.size())) return false;
    if (value < std::numeric_limits<std::int32_t>::min()) return refuse("a number under the 32-bit range");
    values.push_back(static_cast<std::int32_t>(value));
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!admit(values.size())) return false;
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int32_t>::max())) {
      return refuse("a number over the 32-bit range");
    }
    values.push_back(static_cast<std::int32_t>(value));
    return true;
  }
  std::vector<std::int32_t> values;
};

class StringListReader final : public ListReader {
 public:
  using ListReader::ListReader;
  bool string(string_t& value) override {
    if (!admit(values.size())) return false;
    values.push_back(std::move(value));
    return true;
  }
  std::vector<std::string> values;
};

template <class Reader>
Status read_list(std::string_view json, Reader& reader) {
  // The JSON reader takes a zero byte for the end of its input, so text after it would go unseen.
  if (json.find('\0') != std::string_view::npos) return failure(Code::kInvalid, "holds a zero byte");
  const bool complete = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  if (!complete) return failure(Code::kInvalid, reader.reason());
  return {};
}

}  // namespace

std::string in_quotes(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxQuoted)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  if (text.size() > kMaxQuoted) out += "...";
  return out + "\"";
}

std::string format_double(double value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::vector<std::int32_t>> parse_json_ints(std::string_view json, std::size_t max_items) {
  IntListReader reader(max_items);
  if (const Status read = read_list(json, reader); !read) return failure(read.error());
  return std::move(reader.values);
}

Result<std::vector<std::string>> parse_json_strings(std::string_view json, std::size_t max_items) {
  StringListReader reader(max_items);
  if (const Status read = read_list(json, reader); !read) return failure(read.error());
  return std::move(reader.values);
}

std::string format_json_ints(const std::vector<std::int32_t>& values) {
  return nlohmann::json(values).dump();
}

Result<std::string> format_json_strings(const std::vector<std::string>& values) {
  try {
    return nlohmann::json(values).dump();
  } catch (const nlohmann::json::exception&) {
    return failure(Code::kInvalid, "not UTF-8");
  }
}

}  // namespace eldr::signature

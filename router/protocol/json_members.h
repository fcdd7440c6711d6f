// SPDX-License-Identifier: Apache-2.0
// Where the members of a JSON object lie in its bytes. A request's prompt may be hundreds of kilobytes: it is
// stepped over, never decoded, copied or printed again; edits are made on the byte ranges found here.
//
// What is checked: the object's own grammar (names, colons, commas, nothing after it), that strings end, that
// brackets pair and nest at most kMaxJsonDepth deep, that numbers and literals at the top level are
// well-formed. What lies inside nested values is left to the worker that parses it: every document that a
// strict parser accepts is accepted here, with the same members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::router {

inline constexpr std::size_t kMaxJsonDepth = 512;
inline constexpr std::size_t kMaxJsonMembers = 1024;

/// One member; offsets are into the scanned text, ends exclusive.
struct JsonMember {
  std::size_t key_begin = 0;    ///< the opening quote
  std::size_t key_end = 0;      ///< one past the closing quote
  std::size_t value_begin = 0;  ///< the value's first byte
  std::size_t value_end = 0;    ///< one past its last byte
  bool key_escaped = false;     ///< the name holds a backslash
};

/// The members in order, duplicates included. Views stay valid as long as `text` does.
class JsonObject {
 public:
  /// kInvalid with the offset and what was expected.
  static Result<JsonObject> scan(std::string_view text);

  const std::vector<JsonMember>& members() const { return members_; }
  std::string_view text() const { return text_; }
  /// Offset of the closing brace.
  std::size_t close() const { return close_; }
  /// Offset of the opening brace.
  std::size_t open() const { return open_; }

  std::string_view raw_value(const JsonMember& member) const {
    return text_.substr(member.value_begin, member.value_end - member.value_begin);
  }
  /// Whether the member's decoded name is `name` (which holds no character that JSON must escape).
  bool is_named(const JsonMember& member, std::string_view name) const;
  /// The last member of that name (what Python, Go and JavaScript take of duplicates), or nullptr.
  const JsonMember* find(std::string_view name) const;

 private:
  std::string_view text_;
  std::size_t open_ = 0;
  std::size_t close_ = 0;
  std::vector<JsonMember> members_;
};

enum class JsonKind { kString, kNumber, kTrue, kFalse, kNull, kArray, kObject };
/// By the first byte of a scanned value.
JsonKind kind_of(std::string_view raw_value);

/// A scanned number as an integer; nullopt for fractions, exponents and what does not fit.
std::optional<std::int64_t> integer_of(std::string_view raw_value);

/// Elements of a scanned array, at most `limit` counted. `first` receives the first element's bytes, if any.
Result<std::size_t> count_elements(std::string_view raw_array, std::size_t limit, std::string_view* first);

/// `text` as a JSON string with quotes, whatever bytes it holds (bytes that are not UTF-8 become U+FFFD).
std::string quote_json(std::string_view text);

}  // namespace eldr::router

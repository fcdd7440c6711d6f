// SPDX-License-Identifier: Apache-2.0
#include "router/protocol/json_members.h"

#include <array>
#include <bitset>
#include <charconv>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <nlohmann/json.hpp>

namespace eldr::router {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A position in a text that only moves forward. Every step checks the end.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void advance() { ++at_; }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  tl::unexpected<Error> expected(std::string_view what) const {
    return failure(Code::kInvalid,
                   "not valid JSON: expected " + std::string(what) + " at byte " + std::to_string(at_));
  }

  /// From the opening quote to one past the closing one. `escaped` receives whether a backslash was met.
  Status skip_string(bool* escaped) {
    bool saw_escape = false;
    ++at_;
    for (;;) {
      at_ = find_quote_or_escape(at_);
      if (at_ >= text_.size()) return expected("the end of a string");
      if (text_[at_] == '"') break;
      if (text_[at_] != '\\') return expected("no raw control character in a string");
      saw_escape = true;
      at_ += 2;  // whatever is escaped, a quote or a backslash above all, is not the end
      if (at_ > text_.size()) {
        at_ = text_.size();
        return expected("the end of a string");
      }
    }
    ++at_;
    if (escaped != nullptr) *escaped = saw_escape;
    return {};
  }

  /// Any value. Brackets are paired by kind; what stands between them is not looked at, strings excepted.
  Status skip_value() {
    switch (peek()) {
      case '"':
        return skip_string(nullptr);
      case '{':
      case '[':
        return skip_nested();
      case 't':
        return skip_literal("true");
      case 'f':
        return skip_literal("false");
      case 'n':
        return skip_literal("null");
      default:
        return skip_number();
    }
  }

 private:
  /// First offset from `from` of a quote, a backslash or a control character; the text's size without.
  std::size_t find_quote_or_escape(std::size_t from) const {
    const char* data = text_.data();
    const std::size_t size = text_.size();
    std::size_t i = from;
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i last_control = _mm_set1_epi8(0x1F);
    for (; i + 16 <= size; i += 16) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i));
      // min(x, 0x1F) == x, unsigned: x is a control character.
      const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block);
      const __m128i hit =
          _mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));
      const int mask = _mm_movemask_epi8(hit);
      if (mask != 0) return i + static_cast<std::size_t>(__builtin_ctz(static_cast<unsigned>(mask)));
    }
#endif
    for (; i < size; ++i) {
      const auto c = static_cast<unsigned char>(data[i]);
      if (c == '"' || c == '\\' || c < 0x20) return i;
    }
    return size;
  }

  Status skip_nested() {
    std::bitset<kMaxJsonDepth> is_object;
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (auto status = skip_string(nullptr); !status) return status;
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') {
        if (depth == kMaxJsonDepth) return expected("at most 512 levels of nesting");
        is_object[depth++] = c == '{';
      } else if (c == '}' || c == ']') {
        if (is_object[--depth] != (c == '}')) {
          --at_;
          return expected(c == '}' ? "']'" : "'}'");
        }
        if (depth == 0) return {};
      }
    }
    return expected("the end of an array or an object");
  }

  Status skip_literal(std::string_view literal) {
    if (text_.substr(at_, literal.size()) != literal) return expected("a value");
    at_ += literal.size();
    return {};
  }

  Status skip_digits() {
    if (!is_digit(peek())) return expected("a digit");
    while (is_digit(peek())) ++at_;
    return {};
  }

  Status skip_number() {
    if (peek() == '-') {
      ++at_;
    } else if (!is_digit(peek())) {
      return expected("a value");
    }
    if (peek() == '0') {
      ++at_;
    } else if (auto status = skip_digits(); !status) {
      return status;
    }
    if (peek() == '.') {
      ++at_;
      if (auto status = skip_digits(); !status) return status;
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (auto status = skip_digits(); !status) return status;
    }
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Result<JsonObject> JsonObject::scan(std::string_view text) {
  JsonObject object;
  object.text_ = text;
  object.members_.reserve(16);
  Cursor cursor(text);
  cursor.skip_space();
  if (cursor.peek() != '{') return cursor.expected("'{'");
  object.open_ = cursor.at();
  cursor.advance();
  cursor.skip_space();
  bool first = true;
  while (cursor.peek() != '}') {
    if (!first) {
      if (cursor.peek() != ',') return cursor.expected("',' or '}'");
      cursor.advance();
      cursor.skip_space();
    }
    first = false;
    if (object.members_.size() == kMaxJsonMembers) return cursor.expected("at most 1024 members");
    JsonMember member;
    if (cursor.peek() != '"') return cursor.expected("a member's name in quotes");
    member.key_begin = cursor.at();
    if (auto status = cursor.skip_string(&member.key_escaped); !status) return failure(status.error());
    member.key_end = cursor.at();
    cursor.skip_space();
    if (cursor.peek() != ':') return cursor.expected("':'");
    cursor.advance();
    cursor.skip_space();
    member.value_begin = cursor.at();
    if (auto status = cursor.skip_value(); !status) return failure(status.error());
    member.value_end = cursor.at();
    cursor.skip_space();
    object.members_.push_back(member);
  }
  object.close_ = cursor.at();
  cursor.advance();
  cursor.skip_space();
  if (!cursor.done()) return cursor.expected("nothing after the object");
  return object;
}

bool JsonObject::is_named(const JsonMember& member, std::string_view name) const {
  const auto raw = text_.substr(member.key_begin + 1, member.key_end - member.key_begin - 2);
  if (!member.key_escaped) return raw == name;
  if (raw.size() > 6 * name.size()) return false;  // at most \uXXXX for every byte of a plain name
  const auto decoded =
      nlohmann::json::parse(text_.begin() + static_cast<std::ptrdiff_t>(member.key_begin),
                            text_.begin() + static_cast<std::ptrdiff_t>(member.key_end), nullptr, false);
  return decoded.is_string() && decoded.get_ref<const std::string&>() == name;
}

const JsonMember* JsonObject::find(std::string_view name) const {
  for (auto member = members_.rbegin(); member != members_.rend(); ++member)
    if (is_named(*member, name)) return &*member;
  return nullptr;
}

JsonKind kind_of(std::string_view raw_value) {
  switch (raw_value.empty() ? '\0' : raw_value.front()) {
    case '"':
      return JsonKind::kString;
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case 't':
      return JsonKind::kTrue;
    case 'f':
      return JsonKind::kFalse;
    case 'n':
      return JsonKind::kNull;
    default:
      return JsonKind::kNumber;
  }
}

std::optional<std::int64_t> integer_of(std::string_view raw_value) {
  std::int64_t value = 0;
  const auto* end = raw_value.data() + raw_value.size();
  const auto [stop, error] = std::from_chars(raw_value.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

Result<std::size_t> count_elements(std::string_view raw_array, std::size_t limit, std::string_view* first) {
  Cursor cursor(raw_array);
  if (cursor.peek() != '[') return cursor.expected("'['");
  cursor.advance();
  cursor.skip_space();
  std::size_t count = 0;
  while (cursor.peek() != ']' && count < limit) {
    if (count > 0) {
      if (cursor.peek() != ',') return cursor.expected("',' or ']'");
      cursor.advance();
      cursor.skip_space();
    }
    const std::size_t begin = cursor.at();
    if (auto status = cursor.skip_value(); !status) return failure(status.error());
    if (count == 0 && first != nullptr) *first = raw_array.substr(begin, cursor.at() - begin);
    ++count;
    cursor.skip_space();
  }
  return count;
}

std::string quote_json(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace eldr::router

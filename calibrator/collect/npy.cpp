// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/npy.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <spdlog/fmt/fmt.h>

#include "lib/base/digest.h"

namespace eldr::calibrator {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeader = 4096;
constexpr std::size_t kMaxExtent = std::size_t{1} << 24U;

/// The header is the text of a Python dictionary with the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  struct Header {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<std::size_t>> shape;
  };

  Result<Header> parse() {
    Header header;
    if (!accept('{')) {
      return bad("must begin with {");
    }
    while (!accept('}')) {
      const auto key = string();
      if (!key || !accept(':')) {
        return bad("must be a dictionary of text keys");
      }
      if (*key == "descr" && !header.descr) {
        header.descr = string();
      } else if (*key == "fortran_order" && !header.fortran_order) {
        header.fortran_order = boolean();
      } else if (*key == "shape" && !header.shape) {
        header.shape = tuple();
      } else {
        return bad(fmt::format("has a key \"{}\" that is unknown or there twice", printable(*key)));
      }
      if (!accept(',') && peek() != '}') {
        return bad("has a value that is not understood");
      }
    }
    skip_blanks();
    if (position_ != text_.size()) {
      return bad("goes on after }");
    }
    if (!header.descr || !header.fortran_order || !header.shape) {
      return bad("must have descr, fortran_order and shape");
    }
    return header;
  }

 private:
  static tl::unexpected<Error> bad(const std::string& what) {
    return failure(Code::kInvalid, fmt::format("npy header: {}", what));
  }
  static std::string printable(std::string_view text) {
    std::string out(text.substr(0, 32));
    for (char& c : out) {
      c = c >= ' ' && c <= '~' ? c : '?';
    }
    return out;
  }

  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) {
      ++position_;
    }
  }
  char peek() {
    skip_blanks();
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) {
      return false;
    }
    ++position_;
    return true;
  }
  std::optional<std::string> string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') {
      return std::nullopt;
    }
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }
  std::optional<bool> boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"False", false}, {"True", true}}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += word.size();
        return value;
      }
    }
    return std::nullopt;
  }
  std::optional<std::vector<std::size_t>> tuple() {
    if (!accept('(')) {
      return std::nullopt;
    }
    std::vector<std::size_t> extents;
    while (!accept(')')) {
      const auto extent = number();
      if (!extent || extents.size() == 8) {
        return std::nullopt;
      }
      extents.push_back(*extent);
      if (!accept(',') && peek() != ')') {
        return std::nullopt;
      }
    }
    return extents;
  }
  std::optional<std::size_t> number() {
    skip_blanks();
    std::size_t value = 0;
    const std::size_t start = position_;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') {
      value = value * 10 + static_cast<std::size_t>(text_[position_] - '0');
      if (value > kMaxExtent) {
        return std::nullopt;
      }
      ++position_;
    }
    return position_ > start ? std::optional(value) : std::nullopt;
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace

bool is_npy(std::span<const std::byte> bytes) { return as_text(bytes).starts_with(kMagic); }

Result<NpyCube> parse_npy(std::span<const std::byte> bytes) {
  if (!is_npy(bytes) || bytes.size() < 10) {
    return failure(Code::kInvalid, "npy: does not begin with \\x93NUMPY and a version");
  }
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  const std::size_t major = at(6);
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (major < 1 || major > 3 || at(7) != 0 || bytes.size() < 8 + length_bytes) {
    return failure(Code::kInvalid, fmt::format("npy: version {}.{}; must be 1.0, 2.0 or 3.0", major, at(7)));
  }
  std::size_t header_size = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    header_size |= at(8 + i) << (8 * i);
  }
  const std::size_t start = 8 + length_bytes;
  if (header_size > kMaxHeader || header_size > bytes.size() - start) {
    return failure(Code::kInvalid,
                   fmt::format("npy header: {} bytes are announced; {} are there and {} allowed", header_size,
                               bytes.size() - start, kMaxHeader));
  }
  const auto header = HeaderParser(as_text(bytes.subspan(start, header_size))).parse();
  if (!header) {
    return failure(header.error());
  }
  const std::size_t width = *header->descr == "|u1" || *header->descr == "<u1" ? 1
                            : *header->descr == "<u2"                          ? 2
                                                                               : 0;
  if (width == 0) {
    return failure(Code::kInvalid, "npy: descr must be |u1 or <u2");
  }
  if (*header->fortran_order) {
    return failure(Code::kInvalid, "npy: fortran_order must be False");
  }
  if (header->shape->size() != 3) {
    return failure(
        Code::kInvalid,
        fmt::format("npy: {} dimensions; must be 3: tokens, layers, experts a token", header->shape->size()));
  }
  NpyCube cube;
  std::size_t elements = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    cube.shape[i] = (*header->shape)[i];
    elements *= cube.shape[i];
    if (elements > (std::size_t{1} << 32U)) {
      return failure(Code::kInvalid, "npy: more than 2^32 elements");
    }
  }
  const auto data = bytes.subspan(start + header_size);
  if (data.size() != elements * width) {
    return failure(Code::kInvalid,
                   fmt::format("npy: {} bytes of data; shape ({}, {}, {}) needs {}", data.size(),
                               cube.shape[0], cube.shape[1], cube.shape[2], elements * width));
  }
  cube.values.resize(elements);
  for (std::size_t i = 0; i < elements; ++i) {
    const auto low = std::to_integer<std::uint16_t>(data[i * width]);
    const auto high = width == 2 ? std::to_integer<std::uint16_t>(data[i * width + 1]) : std::uint16_t{0};
    cube.values[i] = static_cast<std::uint16_t>(low | (high << 8U));
  }
  return cube;
}

}  // namespace eldr::calibrator

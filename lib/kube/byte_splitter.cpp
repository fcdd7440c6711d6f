// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/byte_splitter.h"

namespace eldr::kube {

Status ByteSplitter::feed(std::string_view bytes, std::vector<std::string>& lines) {
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    // One byte more than the limit is let in for a "\r" that does not count.
    if (rest_.size() + piece.size() > max_line_ + 1) {
      return failure(Code::kResourceExhausted,
                     "a line of the watch is longer than " + std::to_string(max_line_) + " bytes");
    }
    rest_ += piece;
    if (end == std::string_view::npos) {
      return {};
    }
    bytes.remove_prefix(end + 1);
    if (!rest_.empty() && rest_.back() == '\r') {
      rest_.pop_back();
    }
    if (rest_.size() > max_line_) {
      return failure(Code::kResourceExhausted,
                     "a line of the watch is longer than " + std::to_string(max_line_) + " bytes");
    }
    if (!rest_.empty()) {
      lines.push_back(std::move(rest_));
    }
    rest_.clear();
  }
  return {};
}

}  // namespace eldr::kube

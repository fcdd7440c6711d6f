// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of bytes, arriving in pieces of any size, into lines. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/status.h"

namespace eldr::kube {

class ByteSplitter {
 public:
  /// `max_line`: bytes of one line without its end; a longer one is kResourceExhausted and ends the stream.
  explicit ByteSplitter(std::size_t max_line = std::size_t{4} << 20) : max_line_(max_line) {}

  /// Appends to `lines` every line that `bytes` completes, without "\n" or "\r\n". Empty lines are dropped.
  Status feed(std::string_view bytes, std::vector<std::string>& lines);
  /// Bytes of a line that has not ended: not empty at the end of a stream means that it was cut off.
  std::string_view rest() const { return rest_; }

 private:
  std::size_t max_line_;
  std::string rest_;
};

}  // namespace eldr::kube

// SPDX-License-Identifier: Apache-2.0
// Lines of a file, one at a time, with a limit on their length.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "lib/base/status.h"

namespace eldr::calibrator {

class LineReader {
 public:
  static Result<LineReader> open(const std::string& path);

  struct Line {
    std::string text;          ///< without the line's end (\n or \r\n)
    std::uint64_t number = 0;  ///< from 1
    bool too_long = false;     ///< longer than the limit: `text` is its beginning, the rest was skipped
  };
  /// nullopt at the end of the file. kUnavailable: a read error.
  Result<std::optional<Line>> next(std::size_t max_line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  std::uint64_t number_ = 0;
};

}  // namespace eldr::calibrator

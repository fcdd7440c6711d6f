// SPDX-License-Identifier: Apache-2.0
#include "calibrator/dataset/line_reader.h"

#include <cerrno>
#include <cstring>

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

namespace eldr::calibrator {

Result<LineReader> LineReader::open(const std::string& path) {
  LineReader reader;
  reader.file_.reset(std::fopen(path.c_str(), "rb"));
  struct stat facts {};
  if (!reader.file_ || fstat(fileno(reader.file_.get()), &facts) != 0) {
    const int error = errno;
    return failure(error == ENOENT || error == EACCES ? Code::kNotFound : Code::kUnavailable,
                   fmt::format("data set {}: {}", path, std::strerror(error)));
  }
  if (S_ISDIR(facts.st_mode)) {
    return failure(Code::kNotFound, fmt::format("data set {}: is a folder; must be a file", path));
  }
  return reader;
}

Result<std::optional<LineReader::Line>> LineReader::next(std::size_t max_line) {
  Line line;
  int c = 0;
  bool any = false;
  while ((c = getc_unlocked(file_.get())) != EOF) {
    any = true;
    if (c == '\n') {
      break;
    }
    if (line.text.size() < max_line) {
      line.text.push_back(static_cast<char>(c));
    } else {
      line.too_long = true;
    }
  }
  if (c == EOF && std::ferror(file_.get()) != 0) {
    return failure(Code::kUnavailable,
                   fmt::format("data set: read error after line {}: {}", number_, std::strerror(errno)));
  }
  if (!any) {
    return std::optional<Line>();
  }
  if (!line.text.empty() && line.text.back() == '\r') {
    line.text.pop_back();
  }
  line.number = ++number_;
  return std::optional<Line>(std::move(line));
}

}  // namespace eldr::calibrator

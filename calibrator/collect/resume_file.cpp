// SPDX-License-Identifier: Apache-2.0
#include "calibrator/collect/resume_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "calibrator/dataset/line_reader.h"
#include "lib/base/digest.h"

namespace eldr::calibrator {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxRecord = std::size_t{512} << 20U;

template <class Number>
std::string encode(const std::vector<Number>& numbers) {
  return base64_encode(std::as_bytes(std::span(numbers)));  // read by the same machine: its own byte order
}

template <class Number>
bool decode(const json& record, const char* name, std::size_t count, std::vector<Number>& numbers) {
  const auto text = record.find(name);
  if (text == record.end() || !text->is_string()) {
    return false;
  }
  const auto bytes = base64_decode(text->get_ref<const std::string&>(), count * sizeof(Number));
  if (!bytes || bytes->size() != count * sizeof(Number)) {
    return false;
  }
  numbers.resize(count);
  if (count > 0) {
    std::memcpy(numbers.data(), bytes->data(), bytes->size());
  }
  return true;
}

bool number(const json& record, const char* name, std::uint32_t largest, std::uint32_t& value) {
  const auto found = record.find(name);
  if (found == record.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() > largest) {
    return false;
  }
  value = found->get<std::uint32_t>();
  return true;
}

json to_json(std::size_t request, const RequestCounts& counts) {
  return {{"i", request},
          {"p", counts.prompt_tokens},
          {"d", counts.decode_tokens},
          {"l", counts.layers},
          {"k", counts.top_k},
          {"w", counts.width},
          {"prefill", encode(counts.prefill)},
          {"decode", encode(counts.decode)},
          {"repeats", encode(counts.repeats)},
          {"tokens", encode(counts.decode_experts)}};
}

/// Whether each token has top_k experts in each layer, in a width that its largest id explains.
bool consistent(const RequestCounts& counts) {
  const auto picks_are = [&](const std::vector<std::uint32_t>& cells, std::uint32_t tokens) {
    for (std::size_t layer = 0; layer < counts.layers; ++layer) {
      const auto row = cells.begin() + static_cast<std::ptrdiff_t>(layer * counts.width);
      if (std::accumulate(row, row + counts.width, std::uint64_t{0}) !=
          std::uint64_t{tokens} * counts.top_k) {
        return false;
      }
    }
    return true;
  };
  const std::uint64_t rows = std::uint64_t{counts.prompt_tokens} + counts.decode_tokens;
  return counts.prompt_tokens > 0 && counts.layers > 0 && counts.top_k > 0 && counts.width > 0 &&
         picks_are(counts.prefill, counts.prompt_tokens) && picks_are(counts.decode, counts.decode_tokens) &&
         std::all_of(counts.repeats.begin(), counts.repeats.end(),
                     [&](std::uint32_t repeats) { return repeats <= rows; }) &&
         std::all_of(counts.decode_experts.begin(), counts.decode_experts.end(),
                     [&](std::uint16_t expert) { return expert < counts.width; });
}

bool from_json(const json& record, std::size_t requests, std::uint32_t& request, RequestCounts& counts) {
  if (!record.is_object() || !number(record, "i", static_cast<std::uint32_t>(requests - 1), request) ||
      !number(record, "p", 1U << 30U, counts.prompt_tokens) ||
      !number(record, "d", 1U << 30U, counts.decode_tokens) || !number(record, "l", 512, counts.layers) ||
      !number(record, "k", 64, counts.top_k) || !number(record, "w", 4096, counts.width)) {
    return false;
  }
  const std::size_t cells = std::size_t{counts.layers} * counts.width;
  const bool has_tokens = record.contains("tokens") && record["tokens"] != "";
  const std::size_t tokens =
      has_tokens ? std::size_t{counts.decode_tokens} * counts.layers * counts.top_k : std::size_t{0};
  return decode(record, "prefill", cells, counts.prefill) && decode(record, "decode", cells, counts.decode) &&
         decode(record, "repeats", counts.layers, counts.repeats) &&
         decode(record, "tokens", tokens, counts.decode_experts) && consistent(counts);
}

json header_of(const std::string& identity, std::size_t requests) {
  return {{"format", "eldr-collect/1"}, {"identity", identity}, {"requests", requests}};
}

/// Finished requests of a file that has this header; the length of its good part.
std::uintmax_t read_finished(const std::string& path, const json& header,
                             std::vector<std::optional<RequestCounts>>& finished) {
  auto reader = LineReader::open(path);
  if (!reader) {
    return 0;
  }
  std::uintmax_t good_bytes = 0;
  for (;;) {
    const auto line = reader->next(kMaxRecord);
    if (!line || !*line || (*line)->too_long) {
      return good_bytes;
    }
    const json record = json::parse((*line)->text, nullptr, false);
    if ((*line)->number == 1) {
      if (record != header) {
        return 0;
      }
    } else {
      std::uint32_t request = 0;
      RequestCounts counts;
      if (!from_json(record, finished.size(), request, counts)) {
        return good_bytes;
      }
      finished[request] = std::move(counts);
    }
    good_bytes += (*line)->text.size() + 1;
  }
}

tl::unexpected<Error> cannot_write(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM;
  return failure(full ? Code::kResourceExhausted : Code::kUnavailable,
                 fmt::format("resume file {}: {}", path, std::strerror(error)));
}

}  // namespace

Result<std::unique_ptr<ResumeFile>> ResumeFile::open(const std::string& path, const std::string& identity,
                                                     std::size_t requests) {
  auto resume = std::make_unique<ResumeFile>();
  resume->path_ = path;
  resume->finished_.resize(requests);
  const json header = header_of(identity, requests);
  const std::uintmax_t good_bytes = read_finished(path, header, resume->finished_);
  resume->file_.reset(std::fopen(path.c_str(), good_bytes > 0 ? "r+b" : "wb"));
  if (!resume->file_) {
    return cannot_write(path, errno);
  }
  std::FILE* file = resume->file_.get();
  if (good_bytes > 0) {
    // A torn last line goes; a last line that only lacks its end gets it.
    std::error_code unknown;
    const auto size = std::filesystem::file_size(path, unknown);
    if (unknown) {
      return cannot_write(path, unknown.value());
    }
    if (ftruncate(fileno(file), static_cast<off_t>(std::min<std::uintmax_t>(good_bytes, size))) != 0 ||
        std::fseek(file, 0, SEEK_END) != 0) {
      return cannot_write(path, errno);
    }
    if (size < good_bytes) {
      std::fputc('\n', file);
    }
  } else {
    std::fprintf(file, "%s\n", header.dump().c_str());
  }
  if (std::fflush(file) != 0) {
    return cannot_write(path, errno);
  }
  return resume;
}

Status ResumeFile::append(std::size_t request, const RequestCounts& counts) {
  const std::string line = to_json(request, counts).dump() + '\n';
  const std::lock_guard lock(mutex_);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0) {
    return cannot_write(path_, errno);
  }
  return {};
}

void ResumeFile::remove() {
  const std::lock_guard lock(mutex_);
  unlink(path_.c_str());
}

}  // namespace eldr::calibrator

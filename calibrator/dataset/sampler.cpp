// SPDX-License-Identifier: Apache-2.0
#include "calibrator/dataset/sampler.h"

#include <algorithm>
#include <functional>

#include <spdlog/fmt/fmt.h>

#include "calibrator/dataset/line_reader.h"
#include "calibrator/fit/random.h"

namespace eldr::calibrator {
namespace {

constexpr std::size_t kMaxLabels = 10000;
constexpr std::size_t kBadLinesKept = 5;

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t") == std::string::npos; }

/// Calls `good` for every prompt and `bad` for every line that is none.
Status for_each_prompt(const std::string& path, const std::stop_token& stop,
                       const std::function<Status(Prompt)>& good, const std::function<void(BadLine)>& bad) {
  auto reader = LineReader::open(path);
  if (!reader) {
    return failure(reader.error());
  }
  for (;;) {
    if (stop.stop_requested()) {
      return failure(Code::kCancelled, "stopped while reading the data set");
    }
    auto line = reader->next(kMaxLine);
    if (!line) {
      return failure(line.error());
    }
    if (!*line) {
      return {};
    }
    std::string& text = (*line)->text;
    if ((*line)->number == 1 && text.starts_with("\xEF\xBB\xBF")) {
      text.erase(0, 3);
    }
    if (is_blank(text) && !(*line)->too_long) {
      continue;
    }
    auto prompt = (*line)->too_long
                      ? failure(Code::kInvalid, fmt::format("is longer than {} bytes", kMaxLine))
                      : parse_prompt(text, (*line)->number);
    if (!prompt) {
      bad({(*line)->number, prompt.error().message});
    } else if (const Status status = good(std::move(*prompt)); !status) {
      return status;
    }
  }
}

Status judge(const std::string& path, const Sample& sample) {
  if (sample.lines == 0) {
    return failure(Code::kInvalid, fmt::format("data set {}: has no lines", path));
  }
  if (static_cast<double>(sample.bad_lines) > kMaxBadShare * static_cast<double>(sample.lines)) {
    std::string reasons;
    for (const BadLine& bad : sample.first_bad) {
      reasons += fmt::format("; line {}: {}", bad.number, bad.reason);
    }
    return failure(Code::kInvalid,
                   fmt::format("data set {}: {} of {} lines are bad, more than {:.0f} %{}", path,
                               sample.bad_lines, sample.lines, 100 * kMaxBadShare, reasons));
  }
  return {};
}

/// Chooses exactly `wanted` of `left` items that come one after another (Knuth, volume 2, algorithm S).
struct Selector {
  std::uint64_t wanted = 0;
  std::uint64_t left = 0;
  bool take(Random& random) {
    const bool taken = random.below(left) < wanted;
    --left;
    wanted -= taken ? 1 : 0;
    return taken;
  }
};

}  // namespace

std::map<std::string, std::uint64_t> quotas_of(const std::map<std::string, std::uint64_t>& available,
                                               std::uint64_t size) {
  std::uint64_t all = 0;
  for (const auto& [label, count] : available) {
    all += count;
  }
  size = std::min(size, all);
  std::map<std::string, std::uint64_t> quotas;
  struct Remainder {
    std::uint64_t value;
    std::string label;
  };
  std::vector<Remainder> remainders;
  __extension__ using Wide = unsigned __int128;
  std::uint64_t given = 0;
  for (const auto& [label, count] : available) {
    const Wide share = static_cast<Wide>(size) * count;
    quotas[label] = static_cast<std::uint64_t>(share / all);
    given += quotas[label];
    remainders.push_back({static_cast<std::uint64_t>(share % all), label});
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const Remainder& a, const Remainder& b) { return a.value > b.value; });
  for (std::size_t i = 0; given < size; ++i, ++given) {
    ++quotas[remainders[i].label];
  }
  return quotas;
}

Result<Sample> draw_sample(const std::string& path, std::uint64_t size, std::uint64_t seed,
                           const std::stop_token& stop) {
  Sample sample;
  Status read = for_each_prompt(
      path, stop,
      [&](Prompt prompt) -> Status {
        ++sample.lines;
        ++sample.available[prompt.label];
        if (sample.available.size() > kMaxLabels) {
          return failure(Code::kInvalid, fmt::format("data set {}: more than {} labels", path, kMaxLabels));
        }
        return {};
      },
      [&](BadLine bad) {
        ++sample.lines;
        ++sample.bad_lines;
        if (sample.first_bad.size() < kBadLinesKept) {
          sample.first_bad.push_back(std::move(bad));
        }
      });
  if (!read) {
    return failure(read.error());
  }
  if (const Status good = judge(path, sample); !good) {
    return failure(good.error());
  }

  std::map<std::string, Selector> selectors;
  for (const auto& [label, quota] : quotas_of(sample.available, size)) {
    selectors[label] = {quota, sample.available[label]};
  }
  Random random(seed, 0x53414D50);
  read = for_each_prompt(
      path, stop,
      [&](Prompt prompt) -> Status {
        const auto selector = selectors.find(prompt.label);
        if (selector == selectors.end() || selector->second.left == 0) {
          return failure(Code::kInvalid, fmt::format("data set {}: changed while it was read", path));
        }
        if (selector->second.take(random)) {
          sample.prompts.push_back(std::move(prompt));
        }
        return {};
      },
      [](const BadLine&) {});
  if (!read) {
    return failure(read.error());
  }
  return sample;
}

}  // namespace eldr::calibrator

// SPDX-License-Identifier: Apache-2.0
// What a watch of the Kubernetes API brings: the same lines however the bytes are cut, and a watcher that
// survives them.
#include <string>
#include <string_view>

#include "lib/base/digest.h"
#include "lib/kube/byte_splitter.h"
#include "lib/kube/watcher.h"
#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {
namespace {

constexpr std::size_t kLongestLine = 256;

/// The lines up to the first error, with the bytes handed over in pieces of `piece`.
std::vector<std::string> split(std::string_view text, std::size_t piece, bool& refused) {
  kube::ByteSplitter splitter(kLongestLine);
  std::vector<std::string> lines;
  refused = false;
  for (std::size_t at = 0; at < text.size() && !refused; at += piece) {
    refused = !splitter.feed(text.substr(at, piece), lines);
    require(splitter.rest().size() <= kLongestLine + 1, "an unfinished line stays within the limit");
  }
  return lines;
}

void watch(const std::vector<std::string>& lines) {
  const Clock::Steady now{};
  kube::WatcherStep step = kube::step({}, {}, kube::Started{}, now, 0.5);
  step = kube::step({}, std::move(step.state), kube::PageArrived{{{}, "1", ""}}, now, 0.5);
  for (const std::string& line : lines) {
    step = kube::step({}, std::move(step.state), kube::WatchOpened{}, now, 0.5);
    auto event = kube::parse_watch_line(line);
    if (!event) {
      require(!event.error().message.empty(), "a refusal has a reason");
      step = kube::step({}, std::move(step.state), kube::CallFailed{event.error()}, now, 0.5);
    } else {
      step = kube::step({}, std::move(step.state), kube::EventArrived{std::move(*event)}, now, 0.5);
    }
    const auto* wait = std::get_if<kube::Wait>(&step.command);
    require(wait == nullptr || wait->duration <= std::chrono::hours(1), "no wait is unreasonable");
    // To the next line from wherever this one led.
    if (step.state.phase == kube::WatcherPhase::kBackingOff) {
      step = kube::step({}, std::move(step.state), kube::WaitOver{}, now, 0.5);
    }
    if (step.state.phase == kube::WatcherPhase::kListing) {
      step = kube::step({}, std::move(step.state), kube::PageArrived{{{}, "1", ""}}, now, 0.5);
    }
    require(!step.state.resource_version.empty(), "there is always a version to go on from");
  }
}

void run(std::span<const std::byte> input) {
  if (input.empty()) {
    return;
  }
  const std::size_t piece = 1 + static_cast<std::size_t>(input[0]) % 97;
  const std::string_view text = as_text(input.subspan(1));
  bool refused = false;
  bool refused_in_pieces = false;
  const auto lines = split(text, text.size() + 1, refused);
  require(split(text, piece, refused_in_pieces) == lines && refused_in_pieces == refused,
          "the cuts make no difference");
  watch(lines);
}

Bytes seed(const std::string& text) {
  const auto view = as_bytes(text);
  return {view.begin(), view.end()};
}

std::vector<Bytes> seeds() {
  const std::string added = R"({"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5"}}})";
  const std::string bookmark = R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})";
  const std::string gone = R"({"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}})";
  return {seed("\x05" + added + "\n" + bookmark + "\r\n" + gone + "\n"),
          seed("\x01" + added + "\n\n\n" + added.substr(0, 30)), seed("\x60" + std::string(300, 'x') + "\n"),
          seed(R"(0{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":99999999}}})"
               "\n")};
}

ELDR_FUZZ_TARGET(watch_lines, run, seeds);

}  // namespace
}  // namespace eldr::fuzz

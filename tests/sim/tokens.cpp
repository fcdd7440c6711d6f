// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/tokens.h"

#include <array>
#include <cctype>

#include "tests/sim/random.h"

namespace eldr::sim {
namespace {

constexpr std::size_t kPieceLength = 4;

std::size_t length_of_sign(unsigned char first) {
  return first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
}

using WordList = std::array<std::string_view, 8>;
constexpr std::array<WordList, kDomains> kAnswerWords{{
    {"the", "answer", "is", "that", "we", "may", "say", "so"},
    {"return", "for", "value", "in", "list", "if", "else", "def"},
    {"so", "x", "equals", "sum", "of", "12", "and", "thus"},
    {"patient", "dose", "of", "mg", "daily", "monitor", "pressure", "then"},
    {"clause", "party", "shall", "under", "section", "liable", "court", "notice"},
}};

}  // namespace

std::vector<std::uint32_t> tokenize(std::string_view text) {
  std::vector<std::uint32_t> ids;
  ids.reserve(text.size() / 3 + 1);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    if (text[at] == ' ') {
      ++at;  // a space belongs to the piece that it precedes
    }
    const std::size_t piece = at;
    while (at < text.size() && at - piece < kPieceLength &&
           std::isalnum(static_cast<unsigned char>(text[at])) != 0) {
      ++at;
    }
    if (at == piece && at < text.size()) {
      at = std::min(text.size(), at + length_of_sign(static_cast<unsigned char>(text[at])));
    }
    ids.push_back(static_cast<std::uint32_t>(hash_text(text.substr(begin, at - begin)) % kVocabulary));
  }
  if (ids.empty()) {
    ids.push_back(0);
  }
  return ids;
}

std::string token_text(const TextProfile& profile, std::uint64_t seed, std::uint32_t index) {
  const WordList& words = kAnswerWords[static_cast<std::size_t>(profile.domain)];
  Random random(seed + index);
  return std::string(1, ' ').append(words[random.below(words.size())]);
}

}  // namespace eldr::sim

// SPDX-License-Identifier: Apache-2.0
// A tokenizer of the right kind of size (about four letters a token) and words to answer with. No real
// vocabulary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sim/text_profile.h"

namespace eldr::sim {

inline constexpr std::uint32_t kVocabulary = 32'000;

/// Token ids of a text, at least one: pieces of up to four letters, punctuation marks, one sign of other
/// scripts each.
std::vector<std::uint32_t> tokenize(std::string_view text);

/// The text of the answer's token `index`: a word of the domain after a space, chosen by `seed`.
std::string token_text(const TextProfile& profile, std::uint64_t seed, std::uint32_t index);

}  // namespace eldr::sim

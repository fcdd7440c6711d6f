// SPDX-License-Identifier: Apache-2.0
// What a prompt is about and in which language, told from words, symbols and scripts.
#pragma once

#include <cstdint>
#include <string_view>

namespace eldr::sim {

enum class Domain : std::uint8_t { kGeneral, kCode, kMath, kMedical, kLegal };
inline constexpr int kDomains = 5;
std::string_view name_of(Domain domain);  ///< "general", "code", "math", "medical", "legal"

enum class Language : std::uint8_t { kEn, kDe, kFr, kEs, kSw, kZh, kJa, kRu, kBn, kTh, kTe, kOther };
inline constexpr int kLanguages = 12;
std::string_view name_of(Language language);  ///< "en", "de", …, "other"

struct TextProfile {
  Domain domain = Domain::kGeneral;
  Language language = Language::kOther;
};

/// Pure. Linear in the text; looks at its first 16 KiB.
TextProfile profile_of(std::string_view text);

}  // namespace eldr::sim

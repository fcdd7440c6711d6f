// SPDX-License-Identifier: Apache-2.0
// Times as status carries them. Pure; thread-safe.
#pragma once

#include <optional>
#include <string_view>

#include "lib/base/clock.h"

namespace eldr::op {

/// "2026-11-30T01:31:54Z" (with or without a fraction, UTC); nothing for any other text.
std::optional<Clock::Wall> parse_rfc3339(std::string_view text);

}  // namespace eldr::op

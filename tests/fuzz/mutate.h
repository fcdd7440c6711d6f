// SPDX-License-Identifier: Apache-2.0
// Deterministic mutations for the smoke test, of the kinds that libFuzzer uses.
#pragma once

#include <random>

#include "tests/fuzz/fuzz_target.h"

namespace eldr::fuzz {

/// `input` changed in one to four places; parts of `other` may be spliced in. At most twice as long plus 64
/// bytes.
Bytes mutate(const Bytes& input, const Bytes& other, std::mt19937_64& random);

}  // namespace eldr::fuzz

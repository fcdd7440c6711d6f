// SPDX-License-Identifier: Apache-2.0
// What HTTP servers and clients of this layer share: header lists.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eldr::http {

/// Names and values in the order of the message. Names compare without regard to case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// First value of that name, or empty.
std::string_view find_header(const Headers& headers, std::string_view name);

/// Whether a name and a value may be sent: no CR, LF, NUL; a name is a token.
bool is_valid_header(std::string_view name, std::string_view value);

/// "Not Found" for 404; "Unknown" for what has no name.
std::string_view reason_of(int status);

}  // namespace eldr::http

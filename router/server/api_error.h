// SPDX-License-Identifier: Apache-2.0
// Error answers in the form that OpenAI's clients read.
#pragma once

#include <string>
#include <string_view>

#include "lib/http/message.h"

namespace eldr::router {

/// {"error":{"message":…,"type":…,"param":null,"code":…}}
std::string error_body(int status, std::string_view message);

/// A whole answer: head and body. `extra` headers are added as they are.
std::string error_answer(int status, std::string_view message, bool keep_alive, const http::Headers& extra);

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/token_source.h"

namespace eldr::kube {
namespace {

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const auto begin = text.find_first_not_of(kSpace);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

Result<std::string> TokenSource::token() {
  const std::lock_guard lock(mutex_);
  if (file_.empty() || (fresh_ && clock_.steady() - read_at_ < refresh_)) {
    return token_;
  }
  const auto text = PemSource{.file = file_, .text = ""}.read();
  if (!text && token_.empty()) {
    return failure(text.error().with_context("tokenFile"));
  }
  if (text) {
    const std::string token = trimmed(*text);
    // A header cannot carry these: such a file holds something else.
    if (token.find_first_of("\r\n\t ") != std::string::npos || token.empty()) {
      return failure(Code::kInvalid, "tokenFile: " + file_ + " holds no token");
    }
    token_ = token;
  }
  fresh_ = true;
  read_at_ = clock_.steady();
  return token_;
}

void TokenSource::distrust() {
  const std::lock_guard lock(mutex_);
  fresh_ = false;
}

}  // namespace eldr::kube

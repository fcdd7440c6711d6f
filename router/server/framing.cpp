// SPDX-License-Identifier: Apache-2.0
#include "router/server/framing.h"

#include <algorithm>

namespace eldr::router {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyFraming::Step BodyFraming::feed(std::string_view bytes, std::vector<std::string_view>* payload) {
  const auto emit = [&](std::string_view data) {
    if (payload != nullptr && !data.empty()) payload->push_back(data);
  };
  if (kind_ == Kind::kUntilClose) {
    emit(bytes);
    return {bytes.size(), false};
  }
  if (kind_ == Kind::kLength) {
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, bytes.size()));
    emit(bytes.substr(0, taken));
    remaining_ -= taken;
    return {taken, false};
  }
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(remaining_, bytes.size() - at));
      emit(bytes.substr(at, taken));
      remaining_ -= taken;
      at += taken;
      if (remaining_ == 0) state_ = State::kDataCr;
    } else if (!step(bytes[at++])) {
      return {at, true};
    }
  }
  return {at, false};
}

bool BodyFraming::step(char c) {
  switch (state_) {
    case State::kSize: {
      const int digit = hex_value(c);
      if (digit >= 0) {
        if (++digits_ > kMaxSizeDigits) return false;
        remaining_ = remaining_ * 16 + static_cast<unsigned>(digit);
        return true;
      }
      if (digits_ == 0) return false;
      if (c == '\r') {
        state_ = State::kSizeLf;
        return true;
      }
      line_ = 0;
      state_ = State::kExtension;
      return c == ';' || c == ' ' || c == '\t';
    }
    case State::kExtension:
      if (c == '\r')
        state_ = State::kSizeLf;
      else if (c == '\n' || ++line_ > kMaxLine)
        return false;
      return true;
    case State::kSizeLf:
      if (c != '\n') return false;
      state_ = remaining_ == 0 ? State::kTrailerStart : State::kData;
      digits_ = 0;
      return true;
    case State::kDataCr:
      state_ = State::kDataLf;
      return c == '\r';
    case State::kDataLf:
      state_ = State::kSize;
      return c == '\n';
    case State::kTrailerStart:
      if (c == '\r') {
        state_ = State::kEndLf;
        return true;
      }
      state_ = State::kTrailer;
      return c != '\n' && ++trailer_ <= kMaxTrailer;
    case State::kTrailer:
      if (c == '\r') state_ = State::kTrailerLf;
      return c != '\n' && ++trailer_ <= kMaxTrailer;
    case State::kTrailerLf:
      state_ = State::kTrailerStart;
      return c == '\n';
    case State::kEndLf:
      state_ = State::kDone;
      return c == '\n';
    case State::kData:
    case State::kDone:
      break;
  }
  return false;
}

}  // namespace eldr::router

// SPDX-License-Identifier: Apache-2.0
// Random JSON texts with what parsers stumble over: odd whitespace, escapes in names and strings, nested
// members of the same names, duplicates, unicode. Deterministic by seed.
#pragma once

#include <random>
#include <string>

namespace eldr::router::testing {

class RandomJson {
 public:
  explicit RandomJson(std::uint64_t seed) : random_(seed) {}

  /// An object with up to `members` members, often of the names that the router edits.
  std::string object(int members, int depth) {
    std::string text = space() + "{" + space();
    const int count = below(members + 1);
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += "," + space();
      text += name() + space() + ":" + space() + value(depth) + space();
    }
    return text + "}" + space();
  }

  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }

 private:
  std::string space() {
    static const char* const kSpaces[] = {"", "", "", " ", "\n", "\t ", "\r\n", "  "};
    return kSpaces[below(8)];
  }
  std::string name() {
    static const char* const kNames[] = {"\"max_tokens\"",
                                         "\"max\\u005ftokens\"",
                                         "\"stream\"",
                                         "\"\\u0073tream\"",
                                         "\"stream_options\"",
                                         "\"min_tokens\"",
                                         "\"kv_transfer_params\"",
                                         "\"max_completion_tokens\"",
                                         "\"prompt\"",
                                         "\"messages\"",
                                         "\"n\"",
                                         "\"eldr\"",
                                         "\"\"",
                                         "\"a\\\"b\"",
                                         "\"\\\\\"",
                                         "\"\xc3\xa9\"",
                                         "\"max_tokens \"",
                                         "\"Stream\""};
    return kNames[below(18)];
  }
  std::string value(int depth) {
    static const char* const kScalars[] = {"true",
                                           "false",
                                           "null",
                                           "0",
                                           "-1",
                                           "12345",
                                           "1.5e3",
                                           "-0.25E-2",
                                           "\"\"",
                                           "\"text\"",
                                           "\"a \\\"quoted\\\" } ] , { [ : word\"",
                                           "\"\\\\\"",
                                           "\"ends with backslash \\\\\"",
                                           "\"\\u00e9\\ud83d\\ude00 \xf0\x9f\x98\x80 \xe4\xbd\xa0\"",
                                           "\"\\\"max_tokens\\\": 3\""};
    const int kind = depth > 0 ? below(5) : 0;
    if (kind == 3) return object(4, depth - 1);
    if (kind == 4) {
      std::string text = "[" + space();
      const int count = below(4);
      for (int i = 0; i < count; ++i) text += (i > 0 ? "," + space() : "") + value(depth - 1) + space();
      return text + "]";
    }
    return kScalars[below(15)];
  }

  std::mt19937_64 random_;
};

}  // namespace eldr::router::testing

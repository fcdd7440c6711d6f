// SPDX-License-Identifier: Apache-2.0
#include "lib/http/listen_address.h"

#include <gtest/gtest.h>

namespace eldr::http {
namespace {

TEST(ListenAddress, ReadsWhatPeopleWrite) {
  const struct {
    const char* text;
    const char* address;
    int port;
  } cases[] = {{"0.0.0.0:8000", "0.0.0.0", 8000},  {"[::]:8000", "::", 8000},
               {":9090", "0.0.0.0", 9090},         {"localhost:1", "127.0.0.1", 1},
               {"127.0.0.1:0", "127.0.0.1", 0},    {"[::1]:65535", "::1", 65535},
               {"[fd00::1:2]:80", "fd00::1:2", 80}};
  for (const auto& c : cases) {
    const auto parsed = parse_listen_address(c.text);
    ASSERT_TRUE(parsed) << c.text << ": " << parsed.error().message;
    EXPECT_EQ(parsed->address, c.address) << c.text;
    EXPECT_EQ(parsed->port, c.port) << c.text;
  }
}

TEST(ListenAddress, RefusesTheRestAndNamesTheValue) {
  for (const char* text :
       {"", "8000", "host:8000", "1.2.3:80", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1", "1.2.3.4:8x",
        "1.2.3.4: 80", "[::1]", "[zz]:80", "::1:80", "[1.2.3.4]:80", "[]:80"}) {
    const auto parsed = parse_listen_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_NE(parsed.error().message.find(text), std::string::npos) << parsed.error().message;
  }
}

}  // namespace
}  // namespace eldr::http

#include "daemon/exchange/address.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace dfl::exchange {
namespace {

TEST(ParseAddress, TakesNamesAndBothFamilies) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c : {Case{"gateway-1:7400", "gateway-1", 7400},
                        Case{"192.0.2.7:0", "192.0.2.7", 0},
                        Case{"[2001:db8::7]:65535", "2001:db8::7", 65535},
                        Case{"[::]:1", "::", 1}}) {
    const auto parsed = ParseAddress(c.text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->host, c.host);
    EXPECT_EQ(parsed->port, c.port);
    EXPECT_EQ(parsed->ToString(), c.text);
  }
}

TEST(ParseAddress, RefusesEverythingElseAndQuotesIt) {
  for (const char* text :
       {"", "host", ":7400", "host:", "host:70000", "host:-1", "host:7 ",
        "host:+7", "2001:db8::7:7400", "[::1]", "[::1]7400", "[::1", "[]:1",
        "a b:1", "unix:/tmp/x", "dns:///host:1", "host:0x10", "ho\nst:1"}) {
    const auto parsed = ParseAddress(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument)
        << text;
    EXPECT_TRUE(absl::StrContains(parsed.status().message(), text));
    EXPECT_TRUE(absl::StrContains(parsed.status().message(), "host:port"));
  }
}

}  // namespace
}  // namespace dfl::exchange

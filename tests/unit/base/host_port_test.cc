#include "daemon/base/host_port.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl {
namespace {

TEST(HostPort, ReadsNamesAndBothFamilies) {
  struct Case {
    const char* text;
    const char* host;
    int port;
  };
  for (const Case& c : {Case{"box-2.site:7600", "box-2.site", 7600},
                        Case{"10.0.0.7:0", "10.0.0.7", 0},
                        Case{"[fd00::2]:65535", "fd00::2", 65535},
                        Case{"[fe80::1%eth0]:1", "fe80::1%eth0", 1}}) {
    const absl::StatusOr<HostPort> address = ParseHostPort(c.text);
    ASSERT_TRUE(address.ok()) << c.text << ": " << address.status();
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
    EXPECT_EQ(address->ToString(), c.text);
  }
}

TEST(HostPort, SaysWhatIsWrong) {
  struct Case {
    const char* text;
    const char* why;
  };
  for (const Case& c :
       {Case{"box", "no port"}, Case{":7600", "no host"}, Case{"", "no port"},
        Case{"box:", "port \"\" is not in 0 to 65535"},
        Case{"box:65536", "65536"}, Case{"box:-1", "\"-1\""},
        Case{"box:+1", "\"+1\""}, Case{"box: 1", "\" 1\""},
        Case{"fd00::2:7600", "[address]:port"},
        Case{"[fd00::2]", "[address]:port"}, Case{"a b:1", "\" \""},
        Case{"box:1 ", "\"1 \""}, Case{"box:0x10", "0x10"},
        Case{"[]:1", "no host"}, Case{"unix:/tmp/x", "is not in 0 to 65535"},
        Case{"[::1]7400", "[address]:port"}, Case{"ho\nst:1", "\\n"},
        Case{"http://box:1", "[address]:port"}}) {
    const absl::StatusOr<HostPort> address = ParseHostPort(c.text);
    ASSERT_FALSE(address.ok()) << c.text;
    EXPECT_THAT(std::string(address.status().message()),
                testing::HasSubstr(c.why))
        << c.text;
  }
}

TEST(HostPort, KnowsAddressesThatNobodyElseCanReach) {
  EXPECT_TRUE(IsWildcard("0.0.0.0"));
  EXPECT_TRUE(IsWildcard("::"));
  EXPECT_FALSE(IsWildcard("10.0.0.1"));
}

}  // namespace
}  // namespace dfl

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
                        Case{"[::ffff:10.0.0.7]:1", "::ffff:10.0.0.7", 1},
                        Case{"[fe80::1%eth0]:1", "fe80::1%eth0", 1},
                        Case{"[fe80::1%br-lan_2.7]:1", "fe80::1%br-lan_2.7", 1},
                        Case{"[fe80::1%2]:1", "fe80::1%2", 1}}) {
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
       {Case{"box", "no port"},
        Case{":7600", "no host"},
        Case{"", "no port"},
        Case{"box:", "port \"\" is not in 0 to 65535"},
        Case{"box:65536", "65536"},
        Case{"box:-1", "\"-1\""},
        Case{"box:+1", "\"+1\""},
        Case{"box: 1", "\" 1\""},
        Case{"fd00::2:7600", "[address]:port"},
        Case{"[fd00::2]", "[address]:port"},
        Case{"a b:1", "\" \""},
        Case{"box:1 ", "\"1 \""},
        Case{"box:0x10", "0x10"},
        Case{"[]:1", "no host"},
        Case{"unix:/tmp/x", "is not in 0 to 65535"},
        Case{"[::1]7400", "[address]:port"},
        Case{"ho\nst:1", "\\n"},
        Case{"http://box:1", "[address]:port"},
        Case{"fe80::1%eth0:1", "[addr"},
        Case{"[fe801%eth0]:1", "\"fe801\" in brackets is no IPv6 address"},
        Case{"[box]:1", "\"box\" in brackets is no IPv6 address"},
        Case{"[10.0.0.7]:1", "is no IPv6 address"},
        Case{"[1:2:3:4:5:6:7:8:9]:1", "is no IPv6 address"},
        Case{"[fd00::-2]:1", "is no IPv6 address"},
        Case{"[%eth0]:1", "\"\" in brackets is no IPv6 address"},
        Case{"[fe80::1%]:1", "\"\" behind % is no name of an interface"},
        Case{"[fe80::1%eth0%1]:1", "\"eth0%1\" behind %"},
        Case{"[fe80::1%eth0:1]:1", "\"eth0:1\" behind %"},
        Case{"[fe80::1%a-name-too-long-]:1", "is no name of an interface"}}) {
    const absl::StatusOr<HostPort> address = ParseHostPort(c.text);
    ASSERT_FALSE(address.ok()) << c.text;
    EXPECT_THAT(std::string(address.status().message()),
                testing::HasSubstr(c.why))
        << c.text;
  }
}

TEST(HostPort, WhatItReadsItReadsAgain) {
  for (const char* text :
       {"[fe801%eth0]:7600", "[box]:1", "[10.0.0.7]:1", "[::%eth0]:1",
        "[fe80::1%eth-0]:1", "[%]:1", "[.]:1", "[fd00::2]:007", "1.2.3:1"}) {
    const absl::StatusOr<HostPort> address = ParseHostPort(text);
    if (!address.ok()) continue;
    const absl::StatusOr<HostPort> again = ParseHostPort(address->ToString());
    ASSERT_TRUE(again.ok()) << text << ": " << again.status();
    EXPECT_EQ(again->host, address->host);
    EXPECT_EQ(again->port, address->port);
  }
}

TEST(HostPort, KnowsAddressesThatNobodyElseCanReach) {
  for (const char* host :
       {"0.0.0.0", "0", "0x0", "::", "::0", "0:0::", "::%eth0", "::0.0.0.0"}) {
    EXPECT_TRUE(IsWildcard(host)) << host;
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
  for (const char* host : {"127.0.0.1", "127.1", "::1", "0::1", "::1%lo",
                           "::ffff:127.0.0.2", "LocalHost", "a.localhost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
    EXPECT_FALSE(IsWildcard(host)) << host;
  }
  for (const char* host : {"10.0.0.1", "fd00::2", "fe80::1%lo", "box"}) {
    EXPECT_FALSE(IsWildcard(host)) << host;
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace dfl

#include "daemon/discovery/own_addresses.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::discovery {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using List = std::vector<std::string>;
using Interfaces = std::vector<InterfaceAddress>;

const Interfaces& Machine() {
  static const auto* const kMachine = new Interfaces{
      {"lo", "127.0.0.1"},       {"lo", "::1"},
      {"docker0", "172.17.0.1"}, {"br-0a1b2c3d4e5f", "172.18.0.1"},
      {"eth0", "fe80::5"},       {"eth0", "2001:db8::5"},
      {"eth0", "192.0.2.5"},     {"veth12ab", "169.254.3.3"},
      {"wg0", "10.8.0.5"}};
  return *kMachine;
}

struct Case {
  std::string what;
  Listeners listeners;
  Interfaces interfaces;
  List told;
};

TEST(FindOwnAddresses, TellsWhatOthersCanReach) {
  for (const Case& c : {
           Case{"a wildcard of IPv4",
                {{"0.0.0.0:7600"}, "", {}},
                Machine(),
                {"192.0.2.5:7600", "10.8.0.5:7600"}},
           Case{"a wildcard of both",
                {{"[::]:7600"}, "", {}},
                Machine(),
                {"192.0.2.5:7600", "10.8.0.5:7600", "[2001:db8::5]:7600"}},
           Case{"one address",
                {{"10.8.0.5:1"}, "", {}},
                Machine(),
                {"10.8.0.5:1"}},
           Case{"loopback and another",
                {{"127.0.0.1:1", "192.0.2.5:2"}, "", {}},
                Machine(),
                {"192.0.2.5:2"}},
           Case{"loopback only",
                {{"127.0.0.1:1", "[::1]:2"}, "", {}},
                Machine(),
                {"127.0.0.1:1", "[::1]:2"}},
           Case{"advertise",
                {{"0.0.0.0:1"}, "nat.example.org:9", {}},
                Machine(),
                {"nat.example.org:9"}},
           Case{"advertise without a port",
                {{"0.0.0.0:7600"}, "nat.example.org:0", {}},
                Machine(),
                {"nat.example.org:7600"}},
           Case{"advertised loopback of one machine",
                {{"127.0.0.1:1"}, "127.0.0.1:1", {}},
                Machine(),
                {"127.0.0.1:1"}},
           Case{"forwarded to a node that does not listen",
                {{}, "nat.example.org:9", {}},
                Machine(),
                {"nat.example.org:9"}},
           Case{"nothing listened on", {{}, "", {}}, Machine(), {}},
           Case{"not dialable", {{"0.0.0.0:1"}, "", false}, Machine(), {}},
           Case{"bridges of this machine, and nothing else",
                {{"0.0.0.0:1"}, "", {}},
                {{"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}},
                {"172.17.0.1:1"}},
           Case{"no DHCP server, no router",
                {{"0.0.0.0:1"}, "", {}},
                {{"eth0", "169.254.7.7"}},
                {"169.254.7.7:1"}},
           Case{"one link of IPv6",
                {{"[::]:1"}, "", {}},
                {{"eth0", "fe80::5"}},
                {"[fe80::5]:1"}},
       }) {
    const auto own = FindOwnAddresses(c.listeners, c.interfaces);
    ASSERT_TRUE(own.ok()) << c.what << ": " << own.status();
    EXPECT_EQ(*own, c.told) << c.what;
  }
}

TEST(FindOwnAddresses, ToldAddressesAreBounded) {
  Interfaces many;
  for (int i = 1; i < 20; ++i) {
    many.push_back({"eth0", "192.0.2." + std::to_string(i)});
  }
  const auto own = FindOwnAddresses({{"0.0.0.0:1"}, "", {}}, many);
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(*own, SizeIs(kMostOwnAddresses));
}

TEST(FindOwnAddresses, NamesTheSettingThatIsMissing) {
  const auto nothing =
      FindOwnAddresses({{"0.0.0.0:7600"}, "", {}}, {{"lo", "127.0.0.1"}});
  ASSERT_FALSE(nothing.ok());
  EXPECT_TRUE(absl::IsUnavailable(nothing.status())) << "a cable may come";
  EXPECT_THAT(
      std::string(nothing.status().message()),
      AllOf(HasSubstr("peer.advertise: found nothing"),
            HasSubstr("0.0.0.0:7600"), HasSubstr("peer.dialable: off")));
  const auto loopback =
      FindOwnAddresses({{"0.0.0.0:1"}, "127.0.0.1:1", {}}, Machine());
  ASSERT_FALSE(loopback.ok());
  EXPECT_THAT(std::string(loopback.status().message()),
              HasSubstr("peer.advertise: found \"127.0.0.1:1\""));
  const auto deaf = FindOwnAddresses({{}, "", true}, Machine());
  ASSERT_FALSE(deaf.ok());
  EXPECT_THAT(std::string(deaf.status().message()),
              HasSubstr("peer.dialable: found on"));
  EXPECT_FALSE(FindOwnAddresses({{}, "nat.example.org:0", {}}, {}).ok());
}

TEST(SelfAddresses, KnowsThisNodeUnderAllItsAddresses) {
  const auto self =
      SelfAddresses({{"[::]:7600"}, "nat.example.org:9", {}}, Machine());
  for (const char* address :
       {"127.0.0.1:7600", "[::1]:7600", "192.0.2.5:7600", "172.17.0.1:7600",
        "[fe80::5%eth0]:7600", "nat.example.org:9"}) {
    EXPECT_THAT(self, Contains(address));
  }
  EXPECT_THAT(self, Not(Contains("192.0.2.5:7601")));
  EXPECT_THAT(SelfAddresses({{}, "", {}}, Machine()), IsEmpty());
}

TEST(SystemInterfaces, HasLoopback) {
  const auto interfaces = SystemInterfaces();
  ASSERT_TRUE(interfaces.ok()) << interfaces.status();
  EXPECT_THAT(*interfaces, Contains(InterfaceAddress{"lo", "127.0.0.1"}));
}

TEST(IsLinkLocalV6, KnowsTheBlock) {
  EXPECT_TRUE(IsLinkLocalV6("fe80::1"));
  EXPECT_TRUE(IsLinkLocalV6("febf::1%eth0"));
  EXPECT_FALSE(IsLinkLocalV6("fec0::1"));
  EXPECT_FALSE(IsLinkLocalV6("192.0.2.1"));
}

}  // namespace
}  // namespace dfl::discovery

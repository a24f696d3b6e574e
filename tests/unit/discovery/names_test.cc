#include "daemon/discovery/names.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/discovery/fake_resolver.h"
#include "tests/unit/discovery/told.h"

namespace dfl::discovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr PollPeriods kFast = {absl::Milliseconds(1), absl::Milliseconds(1)};
using List = std::vector<std::string>;

class NameListTest : public testing::Test {
 protected:
  NameList& Start(const List& names) {
    list_ = std::make_unique<NameList>("peers", names, fake_.resolver(), kFast);
    list_->Start(told_.tell());
    return *list_;
  }
  void TearDown() override {
    if (list_) list_->Stop();
  }

  FakeResolver fake_;
  Told told_;
  std::unique_ptr<NameList> list_;
};

TEST_F(NameListTest, EveryAddressOfANameIsACandidate) {
  fake_.SetHost("box-1", List{"192.0.2.7", "2001:db8::7", "192.0.2.7"});
  Start({"box-1:7600", "192.0.2.9:1", "[fe80::1%eth0]:2"});
  EXPECT_TRUE(told_.Becomes([](const Findings& found) {
    return found == Findings{{"192.0.2.7:7600", "192.0.2.9:1",
                              "[2001:db8::7]:7600", "[fe80::1%eth0]:2"},
                             ""};
  }));
}

TEST_F(NameListTest, ANameIsResolvedAgainAndAgain) {
  fake_.SetHost("box", List{"192.0.2.1"});
  Start({"box:7"});
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.1:7"}; }));
  fake_.SetHost("box", List{"192.0.2.2"});
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.2:7"}; }));
}

TEST_F(NameListTest, ANameServerThatIsAwayMakesNobodyDisappear) {
  fake_.SetHost("box", List{"192.0.2.1"});
  Start({"box:7"});
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.1:7"}; }));
  fake_.SetHost("box", absl::UnavailableError("Temporary failure"));
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return !f.trouble.empty(); }));
  EXPECT_THAT(told_.last().addresses, ElementsAre("192.0.2.1:7"));
  EXPECT_EQ(told_.last().trouble, "name box: Temporary failure");
}

TEST_F(NameListTest, ANameThatIsGoneHasNoAddress) {
  fake_.SetHost("box", List{"192.0.2.1"});
  Start({"box:7", "192.0.2.9:9"});
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return f.addresses.size() == 2; }));
  fake_.SetHost("box", absl::NotFoundError("Name or service not known"));
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.9:9"}; }));
  EXPECT_THAT(told_.last().trouble, HasSubstr("name box: "));
}

TEST_F(NameListTest, GrowsAndShrinks) {
  NameList& list = Start({});
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return f.addresses.empty(); }));
  list.Add("192.0.2.1:1");
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.1:1"}; }));
  EXPECT_THAT(list.resolved().at("192.0.2.1:1").addresses,
              ElementsAre("192.0.2.1:1"));
  list.Remove("192.0.2.1:1");
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return f.addresses.empty(); }));
  EXPECT_THAT(list.resolved(), IsEmpty());
}

TEST_F(NameListTest, NumbersAskNobody) {
  Start({"192.0.2.1:1", "[2001:db8::1]:1"});
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return f.addresses.size() == 2; }));
  EXPECT_EQ(fake_.lookups(), 0);
}

TEST(NameList, ANameThatHangsHoldsUpNoNumbers) {
  auto go_on = std::make_shared<absl::Notification>();
  Resolver resolver;
  resolver.addresses = [go_on](const std::string&) {
    go_on->WaitForNotification();
    return FakeResolver::Addresses(List{"192.0.2.2"});
  };
  Told told;
  NameList list("peers", {"box:1", "192.0.2.1:1"}, resolver, kFast);
  list.Start(told.tell());
  EXPECT_THAT(told.last().addresses, ElementsAre("192.0.2.1:1"));
  go_on->Notify();
  EXPECT_TRUE(
      told.Becomes([](const Findings& f) { return f.addresses.size() == 2; }));
  list.Stop();
}

class ServicesTest : public testing::Test {
 protected:
  void Start() {
    source_ =
        MakeServiceSource({"_dfl._tcp.example.org"}, fake_.resolver(), kFast);
    source_->Start(told_.tell());
  }
  void TearDown() override {
    if (source_) source_->Stop();
  }

  FakeResolver fake_;
  Told told_;
  std::unique_ptr<Source> source_;
};

TEST_F(ServicesTest, HostsAndPortsComeFromTheService) {
  fake_.SetHost("a.example.org", List{"192.0.2.1"});
  fake_.SetHost("b.example.org", List{"192.0.2.2", "2001:db8::2"});
  fake_.SetService(
      "_dfl._tcp.example.org",
      std::vector<HostPort>{{"a.example.org", 7600}, {"b.example.org", 7601}});
  Start();
  EXPECT_EQ(source_->name(), "srv");
  EXPECT_TRUE(told_.Becomes([](const Findings& f) {
    return f ==
           Findings{{"192.0.2.1:7600", "192.0.2.2:7601", "[2001:db8::2]:7601"},
                    ""};
  }));
}

TEST_F(ServicesTest, WhatIsNotResolvedIsNamedAndTheRestIsUsed) {
  fake_.SetHost("a.example.org", List{"192.0.2.1"});
  fake_.SetService(
      "_dfl._tcp.example.org",
      std::vector<HostPort>{{"a.example.org", 1}, {"b.example.org", 2}});
  Start();
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.1:1"}; }));
  EXPECT_EQ(told_.last().trouble,
            "service _dfl._tcp.example.org: name b.example.org: Name or "
            "service not known");
}

TEST_F(ServicesTest, KeepsWhatItHadWhileNoServerAnswers) {
  fake_.SetService("_dfl._tcp.example.org",
                   std::vector<HostPort>{{"192.0.2.1", 1}});
  Start();
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.1:1"}; }));
  fake_.SetService("_dfl._tcp.example.org",
                   absl::UnavailableError("no name server answers"));
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return !f.trouble.empty(); }));
  EXPECT_THAT(told_.last().addresses, ElementsAre("192.0.2.1:1"));
}

TEST_F(ServicesTest, AHostThatWasGoneComesBackWithoutItsOldAddress) {
  const std::string service = "_dfl._tcp.example.org";
  fake_.SetHost("a.example.org", List{"192.0.2.1"});
  fake_.SetService(service, std::vector<HostPort>{{"a.example.org", 1}});
  Start();
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.1:1"}; }));
  fake_.SetService(service, std::vector<HostPort>{{"192.0.2.9", 9}});
  EXPECT_TRUE(told_.Becomes(
      [](const Findings& f) { return f.addresses == List{"192.0.2.9:9"}; }));
  fake_.SetHost("a.example.org", absl::UnavailableError("Temporary failure"));
  fake_.SetService(service, std::vector<HostPort>{{"a.example.org", 1}});
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return !f.trouble.empty(); }));
  EXPECT_THAT(told_.last().addresses, IsEmpty());
}

TEST_F(ServicesTest, OnlySoManyHostsAreLookedUp) {
  std::vector<HostPort> hosts;
  for (int port = 1; port <= 1025; ++port) {
    hosts.push_back({"192.0.2.1", port});
  }
  fake_.SetService("_dfl._tcp.example.org", hosts);
  Start();
  EXPECT_TRUE(
      told_.Becomes([](const Findings& f) { return !f.trouble.empty(); }));
  EXPECT_THAT(told_.last().addresses, SizeIs(1024));
  EXPECT_THAT(told_.last().trouble, HasSubstr("only the first 1024 hosts"));
}

}  // namespace
}  // namespace dfl::discovery

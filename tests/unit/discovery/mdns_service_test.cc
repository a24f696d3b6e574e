#include "daemon/discovery/mdns_service.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::discovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using List = std::vector<std::string>;

MdnsService Box() {
  return {"plant-4",
          "box-1",
          {"192.0.2.1:7600", "[2001:db8::1]:7600", "[fe80::1]:7600"}};
}

TEST(MdnsService, ASameClustersAddressesAreCandidates) {
  const List txt = TxtOf(Box());
  EXPECT_THAT(txt, ElementsAre("v=1", "cluster=plant-4", "node=box-1",
                               "a=192.0.2.1:7600", "a=[2001:db8::1]:7600",
                               "a=[fe80::1]:7600"));
  EXPECT_THAT(CandidatesOf(txt, "plant-4", "box-2", "eth0"),
              ElementsAre("192.0.2.1:7600", "[2001:db8::1]:7600",
                          "[fe80::1%eth0]:7600"));
}

TEST(MdnsService, AnotherClusterIsNot) {
  EXPECT_THAT(CandidatesOf(TxtOf(Box()), "plant-5", "box-2", "eth0"),
              IsEmpty());
  EXPECT_THAT(CandidatesOf(TxtOf(Box()), "", "box-2", "eth0"), IsEmpty());
  EXPECT_THAT(CandidatesOf({"node=x", "a=192.0.2.1:1"}, "plant-4", "y", "eth0"),
              IsEmpty());
}

TEST(MdnsService, ThisNodeItselfIsNot) {
  EXPECT_THAT(CandidatesOf(TxtOf(Box()), "plant-4", "box-1", "eth0"),
              IsEmpty());
}

TEST(MdnsService, WhatCannotBeDialledIsLeftOut) {
  const List txt = {"cluster=c",          "node=n",        "a=0.0.0.0:7600",
                    "a=[::]:7600",        "a=127.0.0.1:1", "a=[::1]:1",
                    "a=localhost:1",      "a=192.0.2.1:0", "a=224.0.0.251:1",
                    "a=[ff02::fb]:1",     "a=box:7600",    "a=",
                    "a=192.0.2.1",        "b=192.0.2.3:1", "a=192.0.2.2:1",
                    "a=255.255.255.255:1"};
  EXPECT_THAT(CandidatesOf(txt, "c", "me", "eth0"), ElementsAre("192.0.2.2:1"));
  EXPECT_THAT(
      CandidatesOf({"cluster=c", "node=n", "a=[fe80::1]:1"}, "c", "me", ""),
      IsEmpty());
}

TEST(MdnsService, OneServiceHasBoundedAddresses) {
  List txt = {"cluster=c", "node=n"};
  MdnsService service{"c", "n", {}};
  for (int i = 1; i < 100; ++i) {
    txt.push_back(absl::StrCat("a=192.0.2.", i, ":1"));
    service.addresses.push_back(absl::StrCat("192.0.2.", i, ":1"));
  }
  EXPECT_THAT(CandidatesOf(txt, "c", "me", ""), SizeIs(kMostMdnsAddresses));
  EXPECT_THAT(TxtOf(service), SizeIs(3 + kMostMdnsAddresses));
}

TEST(MdnsService, AClusterMustFitIntoAText) {
  EXPECT_TRUE(ValidateForMdns(Box()).ok());
  MdnsService box = Box();
  box.cluster = std::string(248, 'c');
  EXPECT_THAT(std::string(ValidateForMdns(box).message()),
              HasSubstr("cluster: found 248 characters; allowed: 247"));
}

}  // namespace
}  // namespace dfl::discovery

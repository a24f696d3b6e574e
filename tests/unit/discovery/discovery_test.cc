#include "daemon/discovery/discovery.h"

#include <memory>
#include <string>
#include <utility>
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

// Tells what the test says, on the test's thread.
class FakeSource final : public Source {
 public:
  explicit FakeSource(std::string name) : name_(std::move(name)) {}

  const std::string& name() const override { return name_; }
  void Start(Tell tell) override { tell_ = std::move(tell); }
  void Stop() override { tell_ = nullptr; }

  bool started() const { return tell_ != nullptr; }
  void Say(List addresses, std::string trouble = "") {
    tell_({std::move(addresses), std::move(trouble)});
  }

 private:
  const std::string name_;
  Tell tell_;
};

class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryHooks Hooks() {
    return {[this](const std::string& source, const List& addresses) {
              changes_.emplace_back(source, addresses);
            },
            [this](bool warning, const std::string& text) {
              notes_.push_back(absl::StrCat(warning ? "! " : "", text));
            },
            [](absl::string_view address) { return address == "own:1"; }};
  }

  std::vector<std::pair<std::string, List>> changes_;
  List notes_;
  std::shared_ptr<FakeSource> dns_ = std::make_shared<FakeSource>("dns");
  Discovery discovery_{Hooks()};
};

TEST_F(DiscoveryTest, TellsChangesOnly) {
  discovery_.Add(dns_);
  dns_->Say({"a:1"});
  dns_->Say({"a:1"});
  dns_->Say({"a:1", "b:1"});
  EXPECT_THAT(changes_, ElementsAre(std::pair("dns", List{"a:1"}),
                                    std::pair("dns", List{"a:1", "b:1"})));
  EXPECT_THAT(notes_,
              ElementsAre("dns: 1 address: a:1", "dns: 2 addresses: a:1, b:1"));
  EXPECT_THAT(discovery_.findings().at("dns").addresses,
              ElementsAre("a:1", "b:1"));
}

TEST_F(DiscoveryTest, TroubleIsToldOnceACause) {
  discovery_.Add(dns_);
  dns_->Say({"a:1"});
  notes_.clear();
  dns_->Say({"a:1"}, "no name server answers");
  dns_->Say({"a:1"}, "no name server answers");
  dns_->Say({"a:1"}, "Name or service not known");
  dns_->Say({"a:1"});
  EXPECT_THAT(notes_, ElementsAre("! dns: no name server answers",
                                  "! dns: Name or service not known",
                                  "dns: all is well again"));
  EXPECT_THAT(changes_, SizeIs(1));
}

TEST_F(DiscoveryTest, OnesOwnAddressInAListIsNoCandidate) {
  discovery_.Add(dns_);
  dns_->Say({"a:1", "own:1"});
  EXPECT_THAT(changes_, ElementsAre(std::pair("dns", List{"a:1"})));
  EXPECT_THAT(notes_, ElementsAre("dns: 1 address: a:1"));
}

TEST_F(DiscoveryTest, ASourceThatFindsNobodySaysSoOnce) {
  discovery_.Add(dns_);
  dns_->Say({});
  dns_->Say({});
  EXPECT_THAT(changes_, ElementsAre(std::pair("dns", List{})));
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(DiscoveryTest, WhatIsTooMuchIsLeftOutAndNamed) {
  discovery_.Add(dns_);
  List many;
  for (size_t i = 0; i < kMostCandidates + 5; ++i) {
    many.push_back(absl::StrCat("h", i, ":1"));
  }
  dns_->Say(many);
  ASSERT_THAT(changes_, SizeIs(1));
  EXPECT_THAT(changes_[0].second, SizeIs(kMostCandidates));
  EXPECT_THAT(notes_[0], HasSubstr("are used"));
}

TEST_F(DiscoveryTest, StopsItsSourcesAndTakesNoMore) {
  discovery_.Add(dns_);
  EXPECT_TRUE(dns_->started());
  discovery_.Stop();
  EXPECT_FALSE(dns_->started());
  auto late = std::make_shared<FakeSource>("late");
  discovery_.Add(late);
  EXPECT_FALSE(late->started());
}

}  // namespace
}  // namespace dfl::discovery

// Details of a disagreement: fetched where contracts differ, within bounds.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/runtime/contracts/contract_pulls.h"
#include "daemon/runtime/contracts/contract_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/runtime/raw_peer.h"
#include "tests/unit/runtime/sim_cluster.h"

namespace dfl::runtime {
namespace {

using core::ContractField;
using ports::ContractPart;
using ports::ContractWant;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

core::DataContract Contract(std::vector<std::string> classes) {
  core::DataContract contract;
  contract.classes = std::move(classes);
  contract.shape = {4};
  contract.loss = "cross-entropy";
  contract.model = std::string(64, 'a');
  return contract;
}

std::string Text(const core::DataContract& contract, ContractField field) {
  return core::FieldText(contract, field);
}

std::string Between(ContractField field, const core::DataContract& here,
                    const core::DataContract& there) {
  return DifferenceText(field, Text(here, field), Text(there, field));
}

// ------------------------------------------------------------------ texts ----

TEST(DifferenceText, ShowsShortListsWhole) {
  EXPECT_THAT(
      Between(ContractField::kClasses, Contract({"cat", "dog", "fox"}),
              Contract({"cat", "fox"})),
      StartsWith("classes: 3 [\"cat\", \"dog\", \"fox\"] here, 2 [\"cat\", "
                 "\"fox\"] there; set data.classes"));
  EXPECT_THAT(Between(ContractField::kClasses, Contract({}), Contract({"a"})),
              HasSubstr("0 [] here, 1 [\"a\"] there"));
}

TEST(DifferenceText, ShowsLongListsWhereTheyFirstDiffer) {
  std::vector<std::string> names;
  for (int i = 0; i < 784; ++i) names.push_back(absl::StrCat("x", i));
  core::DataContract here;
  here.features = names;
  core::DataContract there = here;
  std::swap(there.features[700], there.features[701]);
  EXPECT_THAT(Between(ContractField::kFeatures, here, there),
              HasSubstr("784 here, 784 there; number 701 is \"x700\" here and "
                        "\"x701\" there"));
  there = here;
  there.features.pop_back();
  EXPECT_THAT(Between(ContractField::kFeatures, here, there),
              HasSubstr("number 784 is \"x783\" here and nothing there"));
}

TEST(DifferenceText, ShowsFewerNamesWhereTheyAreLong) {
  std::vector<std::string> names;
  for (int i = 0; i < 8; ++i) {
    names.push_back(absl::StrCat(std::string(70, 'x'), i));
  }
  std::vector<std::string> others = names;
  others[1] = std::string(70, 'y');
  std::string text =
      Between(ContractField::kClasses, Contract(names), Contract(others));
  EXPECT_THAT(text, HasSubstr("yyy..., "));
  EXPECT_THAT(text, HasSubstr(", ...] there"));
  EXPECT_LE(text.size(), kMostDifferenceBytes);
  // Behind what is shown.
  others = names;
  others[6] = "short";
  text = Between(ContractField::kClasses, Contract(names), Contract(others));
  EXPECT_THAT(text, HasSubstr("8 here, 8 there; number 7 is \"xxx"));
  EXPECT_THAT(text, HasSubstr("and \"short\" there"));
  others = names;
  others.pop_back();
  text = Between(ContractField::kClasses, Contract(names), Contract(others));
  EXPECT_THAT(text, HasSubstr("and nothing there"));
  // Characters of several bytes, and those that are written with two.
  for (const char* character : {"\xf0\x9f\x90\x88", "\"", "\n"}) {
    std::string name;
    for (int i = 0; i < 100; ++i) name += character;
    core::DataContract here;
    core::DataContract there;
    here.features.assign(10, name);
    there.features.assign(9, name + "x");
    text = Between(ContractField::kFeatures, here, there);
    EXPECT_LE(text.size(), kMostDifferenceBytes);
  }
}

TEST(DifferenceText, ShowsLongValuesWhereTheyFirstDiffer) {
  core::DataContract here;
  here.input.per = core::InputScaling::Per::kFeature;
  here.input.over = core::InputScaling::Over::kGiven;
  here.input.mean.assign(500, 0.5F);
  here.input.std.assign(500, 1);
  core::DataContract there = here;
  there.input.mean[400] = 0.75F;
  const std::string text = Between(ContractField::kInput, here, there);
  EXPECT_THAT(text, HasSubstr("0.75"));
  EXPECT_LT(text.size(), 700U);
}

TEST(DifferenceText, IsReadableWhateverTheOtherSideSays) {
  const std::string here = Text(Contract({"cat"}), ContractField::kClasses);
  for (const std::string& there : std::vector<std::string>{
           "", "\"", "[\"\\", std::string("[\"\0\n\x1b[31m\xff\xfe\"]", 13),
           "[\"Gr\xc3\xb6\xc3\x9f"
           "e\"]",
           std::string(1 << 20, '"'), std::string(1 << 20, '\xc3'),
           "[\"\xed\xa0\x80\"]", "[\"\xf4\x90\x80\x80\"]"}) {
    for (const ContractField field : core::kContractFields) {
      const std::string text = DifferenceText(field, here, there);
      EXPECT_LE(text.size(), kMostDifferenceBytes);
      for (const char c : text) {
        EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
      }
    }
  }
  EXPECT_THAT(DifferenceText(ContractField::kClasses, here,
                             "[\"Gr\xc3\xb6\xc3\x9f"
                             "e\"]"),
              HasSubstr("Gr\xc3\xb6\xc3\x9f"
                        "e"));
  EXPECT_THAT(DifferenceText(ContractField::kClasses, here, "[\"\xff\"]"),
              HasSubstr("[\"?\"] there"));
}

// ------------------------------------------------------------------ pulls ----

// Node "a", which has links and ContractPulls and nothing else; "p" says what
// the test tells it to.
class ContractPullsTest : public testing::Test, public Links::Listener {
 protected:
  ContractPullsTest()
      : log_(scheduler_),
        loop_(scheduler_),
        transport_(network_, loop_, Options()),
        links_(LinksOptions{NodeId("a")}, loop_, transport_, log_, *this),
        pulls_([this] { return &own_; }, loop_, links_,
               [this](const NodeId&, const std::string& text) {
                 bad_.push_back(text);
               }) {
    peer_.Dial("a:1");
    Pass();
  }

  void OnPeerUp(const NodeId& peer, bool restarted) override {
    pulls_.OnPeerUp(peer, restarted);
  }
  void OnPeerDown(const NodeId& peer, const absl::Status& reason) override {
    pulls_.OnPeerDown(peer, reason);
  }
  void OnPeerFrame(const NodeId& peer, ports::Frame frame) override {
    if (auto* want = std::get_if<ContractWant>(&frame)) {
      pulls_.OnFrame(peer, *want);
    } else if (auto* part = std::get_if<ContractPart>(&frame)) {
      pulls_.OnFrame(peer, std::move(*part));
    }
  }
  void OnPeerWritable(const NodeId&) override {}
  void OnAddressFailed(const std::string&) override {}

  void Compare(const core::DataContract& there) {
    pulls_.Compare(kPeer, core::DigestOf(own_), core::DigestOf(there));
    Pass();
  }
  void Pass() { scheduler_.RunFor(absl::Milliseconds(50)); }
  void Say(ports::Frame frame) {
    ASSERT_TRUE(peer_.Send(std::move(frame)).ok());
    Pass();
  }
  // What "p" was asked for since the last call.
  std::vector<ContractWant> Wants() {
    auto wants = peer_.Heard<ContractWant>();
    peer_.Forget();
    return wants;
  }

  const NodeId kPeer{"p"};
  core::DataContract own_ = Contract({"cat", "dog"});
  simports::SimScheduler scheduler_;
  simports::SimNetwork network_{scheduler_, 1, {}};
  EventLog log_;
  simports::SimLoop loop_;
  simports::SimTransport transport_;
  std::vector<std::string> bad_;
  Links links_;
  ContractPulls pulls_;
  RawPeer peer_{network_, "p"};

 private:
  static simports::SimTransportOptions Options() {
    simports::SimTransportOptions options;
    options.node = NodeId("a");
    options.address = "a:1";
    return options;
  }
};

TEST_F(ContractPullsTest, FetchesOnlyWhatDiffersOneAfterTheOther) {
  core::DataContract there = Contract({"cat"});
  there.shape = {3};
  Compare(there);
  auto wants = Wants();
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_EQ(wants[0].field, ContractField::kClasses);
  EXPECT_FALSE(pulls_.Complete(kPeer));
  EXPECT_THAT(pulls_.Difference(kPeer, ContractField::kClasses),
              StartsWith("classes; set data.classes"));
  const std::string text = Text(there, ContractField::kClasses);
  const auto size = static_cast<int64_t>(text.size());
  Say(ContractPart{ContractField::kClasses, size, 0, text});
  wants = Wants();
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_EQ(wants[0].field, ContractField::kShape);
  Say(ContractPart{ContractField::kShape, 3, 0, "[3]"});
  EXPECT_TRUE(pulls_.Complete(kPeer));
  EXPECT_TRUE(Wants().empty());
  EXPECT_THAT(pulls_.Difference(kPeer, ContractField::kClasses),
              HasSubstr("2 [\"cat\", \"dog\"] here, 1 [\"cat\"] there"));
  EXPECT_THAT(pulls_.Difference(kPeer, ContractField::kShape),
              StartsWith("shape: [4] here, [3] there; set "));
  EXPECT_TRUE(bad_.empty());
  EXPECT_EQ(pulls_.under_way(), 0);
  // Nothing that is the same, and nothing twice.
  Compare(there);
  Compare(own_);
  EXPECT_TRUE(Wants().empty());
}

TEST_F(ContractPullsTest, ALongValueComesInParts) {
  std::vector<std::string> names;
  for (int i = 0; i < 9000; ++i) names.push_back(absl::StrCat("name-", i));
  const core::DataContract there = Contract(names);
  const std::string text = Text(there, ContractField::kClasses);
  Compare(there);
  size_t come = 0;
  int parts = 0;
  while (come < text.size() && ++parts < 20) {
    const auto wants = Wants();
    ASSERT_EQ(wants.size(), 1U);
    ASSERT_EQ(wants[0].offset, static_cast<int64_t>(come));
    const std::string data = text.substr(come, ports::kMaxContractPartBytes);
    Say(ContractPart{ContractField::kClasses, static_cast<int64_t>(text.size()),
                     static_cast<int64_t>(come), data});
    come += data.size();
  }
  EXPECT_GT(parts, 3);
  EXPECT_THAT(pulls_.Difference(kPeer, ContractField::kClasses),
              HasSubstr("9000 [\"name-0\""));
}

TEST_F(ContractPullsTest, WhatIsWrongIsABadMessageAndNotAskedForAgain) {
  const core::DataContract there = Contract({"cat"});
  const std::string text = Text(there, ContractField::kClasses);
  const auto size = static_cast<int64_t>(text.size());
  Compare(there);
  // Not what its digest says.
  Say(ContractPart{ContractField::kClasses, size, 0, std::string(size, 'x')});
  EXPECT_EQ(bad_.size(), 1U);
  EXPECT_TRUE(pulls_.Complete(kPeer));
  EXPECT_EQ(Wants().size(), 1U);
  // Not where the next part begins, and not as long as it must be.
  for (const ContractPart& part :
       {ContractPart{ContractField::kClasses, 40000, 32768, "x"},
        ContractPart{ContractField::kClasses, size, 0, "x"}}) {
    bad_.clear();
    Compare(own_);
    Compare(there);
    EXPECT_EQ(Wants().size(), 1U);
    Say(part);
    EXPECT_EQ(bad_.size(), 1U);
    EXPECT_TRUE(pulls_.Complete(kPeer));
    EXPECT_TRUE(Wants().empty());
  }
  // What nobody waits for is dropped.
  bad_.clear();
  Say(ContractPart{ContractField::kModel, 4, 0, "abcd"});
  EXPECT_TRUE(bad_.empty());
  EXPECT_EQ(pulls_.under_way(), 0);
}

TEST_F(ContractPullsTest, APeerThatIsSilentOrSaysNothingIsGivenUp) {
  core::DataContract there = Contract({"cat"});
  there.shape = {3};
  Compare(there);
  EXPECT_EQ(Wants().size(), 1U);
  Say(ContractPart{ContractField::kClasses, 0, 0, ""});
  EXPECT_EQ(Wants().size(), 1U);
  scheduler_.RunFor(absl::Seconds(4));
  EXPECT_TRUE(pulls_.Complete(kPeer));
  EXPECT_EQ(pulls_.under_way(), 0);
  EXPECT_TRUE(bad_.empty());
}

TEST_F(ContractPullsTest, GivesOnlyWhatDiffersAndAnswersAlways) {
  const auto ask = [&](ContractField field, int64_t offset) {
    peer_.Forget();
    Say(ContractWant{field, offset});
    const auto parts = peer_.Heard<ContractPart>();
    EXPECT_EQ(parts.size(), 1U);
    return parts.empty() ? ContractPart() : parts[0];
  };
  // Not compared with: nothing is told.
  EXPECT_EQ(ask(ContractField::kClasses, 0).total_bytes, 0);
  Compare(Contract({"cat"}));
  const ContractPart part = ask(ContractField::kClasses, 0);
  EXPECT_EQ(part.data, Text(own_, ContractField::kClasses));
  EXPECT_EQ(part.total_bytes, static_cast<int64_t>(part.data.size()));
  EXPECT_EQ(ask(ContractField::kClasses, 5).data, part.data.substr(5));
  EXPECT_EQ(ask(ContractField::kClasses, part.total_bytes).total_bytes, 0);
  EXPECT_EQ(ask(ContractField::kLoss, 0).total_bytes, 0);
  // Nobody may ask for ever.
  peer_.Forget();
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(peer_.Send(ContractWant{ContractField::kClasses, 0}).ok());
    if (i % 100 == 0) scheduler_.RunFor(absl::Milliseconds(1));
  }
  Pass();
  EXPECT_LT(peer_.Heard<ContractPart>().size(), 1000U);
}

TEST_F(ContractPullsTest, OfAllPeersFourAreAskedAtATime) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 6; ++i) {
    peers.push_back(std::make_unique<RawPeer>(network_, absl::StrCat("q", i)));
    peers.back()->Dial("a:1");
    Pass();
    pulls_.Compare(NodeId(absl::StrCat("q", i)), core::DigestOf(own_),
                   core::DigestOf(Contract({"cat"})));
  }
  EXPECT_EQ(pulls_.under_way(), ContractPulls::kMaxPulls);
  scheduler_.RunFor(absl::Seconds(10));
  EXPECT_EQ(pulls_.under_way(), 0);
  for (const auto& peer : peers) {
    EXPECT_EQ(peer->Heard<ContractWant>().size(), 1U);
  }
}

}  // namespace
}  // namespace dfl::runtime

// Records on their way from node to node, and what a neighbour that lies about
// them can do.
#include "daemon/runtime/gossip/record_gossip.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/simports/sim_files.h"
#include "daemon/simports/sim_network.h"
#include "daemon/simports/sim_scheduler.h"
#include "gtest/gtest.h"
#include "tests/unit/gossip/fake_judge.h"
#include "tests/unit/gossip/gossip_node.h"
#include "tests/unit/runtime/raw_peer.h"

namespace dfl::runtime {
namespace {

using ports::RecordId;
using ports::RecordPart;
using ports::RecordSummary;
using ports::RecordWant;

constexpr int64_t kPart = ports::kMaxRecordPartBytes;

class Gossip : public testing::Test {
 protected:
  Gossip() : network_(scheduler_, 1, Slow()) {}

  static simports::SimNetworkOptions Slow() {
    simports::SimNetworkOptions options;
    options.path.delay = absl::Milliseconds(5);
    return options;
  }

  GossipNode& Boot(const std::string& name) {
    nodes_.erase(name);
    nodes_[name] = std::make_unique<GossipNode>(network_, name, &judges_[name],
                                                &disks_[name], ++starts_);
    EXPECT_TRUE(nodes_[name]->loaded().ok());
    return *nodes_[name];
  }
  GossipNode& node(const std::string& name) { return *nodes_.at(name); }
  // n0 - n1 - n2 ...
  void Line(int count) {
    for (int i = 0; i < count; ++i) {
      Boot(absl::StrCat("n", i));
      if (i > 0) node(absl::StrCat("n", i)).Dial(absl::StrCat("n", i - 1));
    }
    for (int i = 1; i < count; ++i) {
      ASSERT_TRUE(scheduler_.RunUntil(
          [&] {
            return node(absl::StrCat("n", i))
                .IsLinked(absl::StrCat("n", i - 1));
          },
          absl::Seconds(10)));
    }
    RunFor(absl::Seconds(1));
  }
  void Offer(const std::string& name, const FakeRecord& record) {
    const auto answer = node(name).gossip().Offer(BytesOf(record));
    ASSERT_TRUE(answer.ok()) << answer.status();
  }
  bool AllHold(const FakeRecord& record,
               absl::Duration limit = absl::Seconds(60)) {
    const RecordId id = IdOf(record);
    return scheduler_.RunUntil(
        [&] {
          return std::all_of(nodes_.begin(), nodes_.end(), [&](auto& n) {
            return n.second->book().Find(id) != nullptr;
          });
        },
        limit);
  }
  void RunFor(absl::Duration duration) { scheduler_.RunFor(duration); }

  simports::SimScheduler scheduler_;
  simports::SimNetwork network_;
  std::map<std::string, FakeJudge> judges_;
  std::map<std::string, simports::SimFiles> disks_;
  uint64_t starts_ = 0;
  std::map<std::string, std::unique_ptr<GossipNode>> nodes_;
};

TEST_F(Gossip, ARecordGoesAlongALine) {
  Line(5);
  const FakeRecord ban{.kind = 3, .subject = "box", .content = "stolen"};
  Offer("n0", ban);
  EXPECT_TRUE(AllHold(ban));
  EXPECT_EQ(node("n4").taken(),
            (std::vector<std::string>{"n3 record 3.1 of ann"}));
  EXPECT_EQ(node("n0").taken(),
            (std::vector<std::string>{" record 3.1 of ann"}));
  const RecordBook::Held* held = node("n4").book().Find(IdOf(ban));
  EXPECT_EQ(held->record->content(), "stolen");
  EXPECT_EQ(held->record->bytes, BytesOf(ban));
  ASSERT_EQ(node("n4").came().size(), 1U);
  EXPECT_TRUE(node("n4").came()[0].taken);
  RunFor(absl::Minutes(5));
  for (const auto& [name, n] : nodes_) {
    EXPECT_EQ(n->taken().size(), 1U) << name;
    EXPECT_TRUE(n->bad().empty()) << name;
    EXPECT_EQ(judges_[name].opened(), 1) << name;  // it was fetched once
  }
}

TEST_F(Gossip, TheLongestPlanGoesAlongALine) {
  Line(4);
  FakeRecord plan{.counter = 3};
  plan.content.assign(8 << 20, 'p');
  const int64_t before = network_.delivered().bytes;
  Offer("n0", plan);
  EXPECT_TRUE(AllHold(plan));
  const int64_t bytes = network_.delivered().bytes - before;
  EXPECT_LT(bytes, 3 * (plan.content.size() * 1.02));
}

TEST_F(Gossip, TheNewestWinsEverywhereAfterAPartition) {
  Line(4);
  const FakeRecord old{.counter = 1};
  Offer("n0", old);
  ASSERT_TRUE(AllHold(old));
  network_.Cut("n1:1", "n2:1");
  RunFor(absl::Seconds(1));
  FakeRecord left{.counter = 2, .author = "ann"};
  FakeRecord right{.counter = 2, .author = "bob"};
  if (IdOf(left).hash > IdOf(right).hash) std::swap(left.author, right.author);
  const FakeRecord ban{.kind = 3, .subject = "box"};
  Offer("n0", left);
  Offer("n0", ban);
  Offer("n3", right);
  RunFor(absl::Minutes(1));
  EXPECT_TRUE(node("n1").Holds(left));
  EXPECT_TRUE(node("n2").Holds(right));
  EXPECT_FALSE(node("n2").Holds(ban));
  network_.Heal("n1:1", "n2:1");
  EXPECT_TRUE(AllHold(right));  // the larger hash
  EXPECT_TRUE(AllHold(ban));
  EXPECT_TRUE(std::any_of(
      node("n0").book().history().begin(), node("n0").book().history().end(),
      [&](const PastRecord& past) { return past.id == IdOf(left); }));
  Offer("n3", FakeRecord{.counter = 3});
  EXPECT_TRUE(AllHold(FakeRecord{.counter = 3}));
}

TEST_F(Gossip, ARestartedNodeHasItsRecordsAndPassesThemOn) {
  Line(2);
  const FakeRecord ban{.kind = 3, .subject = "box"};
  Offer("n0", ban);
  ASSERT_TRUE(AllHold(ban));
  nodes_.clear();
  EXPECT_TRUE(Boot("n1").Holds(ban));
  Boot("n2").Dial("n1");  // a new one
  EXPECT_TRUE(AllHold(ban));
}

TEST_F(Gossip, MoreRecordsThanASummaryNamesAllTravel) {
  Boot("n0");
  std::vector<FakeRecord> bans;
  for (int i = 0; i < 200; ++i) {
    bans.push_back({.kind = 3, .subject = absl::StrCat("box-", i)});
    Offer("n0", bans.back());
  }
  Boot("n1").Dial("n0");
  for (const FakeRecord& ban : bans) ASSERT_TRUE(AllHold(ban));
  EXPECT_TRUE(node("n1").bad().empty());
}

TEST_F(Gossip, WithAFullDiskARecordOfANeighbourHoldsAndIsWrittenLater) {
  Line(3);
  disks_["n1"].set_capacity(10);
  const FakeRecord ban{.kind = 3, .subject = "box"};
  const FakeRecord plan{.counter = 1};
  Offer("n0", ban);
  RunFor(absl::Seconds(5));
  Offer("n0", plan);
  RunFor(absl::Seconds(5));
  EXPECT_EQ(node("n1").taken(),
            (std::vector<std::string>{"n0 record 3.1 of ann",
                                      "n0 record 1.1 of ann"}));
  EXPECT_TRUE(AllHold(ban, absl::Seconds(1)));
  EXPECT_TRUE(AllHold(plan, absl::Seconds(1)));  // n2 by n1
  EXPECT_TRUE(node("n1").bad().empty());         // not the peer's fault
  const auto& came = node("n1").came();
  EXPECT_EQ(came.size(), 3U);
  EXPECT_EQ(std::count_if(came.begin(), came.end(),
                          [](const ports::RecordCame& event) {
                            return !event.taken &&
                                   absl::StrContains(event.text,
                                                     "cannot be stored");
                          }),
            1);
  EXPECT_FALSE(disks_["n1"].Read(RecordBook::kFile).ok());
  disks_["n1"].set_capacity(-1);
  RunFor(absl::Seconds(30));
  nodes_.clear();
  Boot("n1");
  EXPECT_TRUE(node("n1").Holds(ban));
  EXPECT_TRUE(node("n1").Holds(plan));
}

TEST_F(Gossip, WithAFullDiskARecordThatAPersonBringsIsRefused) {
  Line(2);
  const FakeRecord ban{.kind = 3, .subject = "box"};
  Offer("n0", ban);
  ASSERT_TRUE(AllHold(ban));
  const std::string plan = BytesOf({.counter = 1});
  disks_["n0"].set_capacity(10);
  EXPECT_EQ(node("n0").gossip().Offer(plan).status().code(),
            absl::StatusCode::kResourceExhausted);
  disks_["n0"].set_capacity(-1);
  disks_["n0"].FailWith(absl::InternalError("broken"));
  EXPECT_EQ(node("n0").gossip().Offer(plan).status().code(),
            absl::StatusCode::kInternal);
  RunFor(absl::Minutes(1));
  for (const char* name : {"n0", "n1"}) {
    EXPECT_EQ(node(name).book().current().size(), 1U) << name;
    EXPECT_EQ(node(name).taken().size(), 1U) << name;
  }
}

TEST_F(Gossip, ARecordThatWasKeptElsewhereIsPassedOnAndWrittenLater) {
  Line(2);
  const FakeRecord old{.counter = 1};
  const FakeRecord plan{.counter = 2};
  Offer("n0", old);
  ASSERT_TRUE(AllHold(old));
  disks_["n0"].set_capacity(10);
  EXPECT_TRUE(node("n0").gossip().Restore(BytesOf(plan)).ok());
  EXPECT_EQ(node("n0").taken().back(), " record 1.2 of ann");
  EXPECT_TRUE(AllHold(plan));
  EXPECT_TRUE(node("n0").gossip().Restore(BytesOf(old)).ok());
  EXPECT_TRUE(node("n0").gossip().Restore(BytesOf(plan)).ok());
  EXPECT_EQ(node("n0").taken().size(), 2U);
  disks_["n0"].set_capacity(-1);
  RunFor(absl::Minutes(1));
  nodes_.clear();
  EXPECT_TRUE(Boot("n0").Holds(plan));
  EXPECT_EQ(node("n0").gossip().Restore("garbage").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(Gossip, WhatIsNotTrustedIsNeitherTakenNorPassedOn) {
  Line(3);
  const FakeRecord plan{.counter = 1, .author = "eve"};
  judges_["n1"].Shun("eve");
  Offer("n0", plan);
  RunFor(absl::Minutes(1));
  EXPECT_FALSE(node("n1").Holds(plan));
  EXPECT_FALSE(node("n2").Holds(plan));
  ASSERT_EQ(node("n1").bad().size(), 1U);
  EXPECT_EQ(node("n1").bad()[0], "n0: a record is refused: eve is banned");
  EXPECT_FALSE(node("n1").came()[0].taken);
  EXPECT_EQ(judges_["n1"].opened(), 1);  // and not fetched again
  // Once she is trusted it comes, without a new announcement.
  judges_["n1"].Pardon("eve");
  node("n1").gossip().TrustChanged();
  EXPECT_TRUE(AllHold(plan));
  // What is held of a banned author is not passed on to new neighbours.
  judges_["n2"].Shun("eve");
  node("n2").gossip().TrustChanged();
  Boot("n3").Dial("n2");
  RunFor(absl::Minutes(1));
  EXPECT_TRUE(node("n2").Holds(plan));
  EXPECT_FALSE(node("n3").Holds(plan));
  judges_["n2"].Pardon("eve");
  node("n2").gossip().TrustChanged();
  EXPECT_TRUE(AllHold(plan));
  // One that loses its trust between the announcement and the request.
  const FakeRecord next{.counter = 2, .author = "mallory"};
  Offer("n0", next);
  judges_["n0"].Shun("mallory");
  RunFor(absl::Minutes(1));
  EXPECT_FALSE(node("n1").Holds(next));
}

TEST_F(Gossip, WithoutAJudgeNothingIsSentAndFramesAreRefused) {
  GossipNode open(network_, "open", nullptr, &disks_["open"]);
  RawPeer peer(network_, "raw");
  peer.Dial("open:1");
  RunFor(absl::Seconds(1));
  const RecordId id = IdOf({});
  ASSERT_TRUE(peer.Send(RecordSummary{{id}}).ok());
  ASSERT_TRUE(peer.Send(RecordWant{id}).ok());
  ASSERT_TRUE(peer.Send(RecordPart{id, 0, 0, ""}).ok());
  RunFor(absl::Minutes(1));
  EXPECT_EQ(open.bad().size(), 3U);
  EXPECT_TRUE(peer.Heard<RecordSummary>().empty());
  EXPECT_TRUE(peer.Heard<RecordWant>().empty());
  EXPECT_TRUE(peer.Heard<RecordPart>().empty());
  EXPECT_EQ(open.gossip().Offer(BytesOf({})).status().code(),
            absl::StatusCode::kFailedPrecondition);
  open.gossip().TrustChanged();
  EXPECT_TRUE(peer.linked());
}

// n0 is honest and linked to an honest n1; "liar" says what it likes.
class HostileGossip : public Gossip {
 protected:
  HostileGossip() {
    Line(2);
    Offer("n0", known_);
    EXPECT_TRUE(AllHold(known_));
    liar_ = std::make_unique<RawPeer>(network_, "liar");
    liar_->Dial("n0:1");
    RunFor(absl::Seconds(1));
    EXPECT_EQ(liar_->Heard<RecordSummary>().size(), 1U);
    liar_->Forget();
  }
  void Send(const ports::Frame& frame) {
    const absl::Status sent = liar_->Send(frame);
    ASSERT_TRUE(sent.ok()) << sent;
  }
  // Announces `id` and waits until it is wanted.
  void Announce(const RecordId& id) {
    liar_->Forget();
    Send(RecordSummary{{id}});
    ASSERT_TRUE(
        scheduler_.RunUntil([&] { return !liar_->Heard<RecordWant>().empty(); },
                            absl::Minutes(30)));
    EXPECT_EQ(liar_->Heard<RecordWant>()[0].record, id);
  }
  void SendWhole(const RecordId& id, const std::string& bytes) {
    const auto total = static_cast<int64_t>(bytes.size());
    for (int64_t at = 0; at < total; at += kPart) {
      Send(RecordPart{id, total, at, bytes.substr(at, kPart)});
      RunFor(absl::Milliseconds(20));
    }
  }
  void ExpectNothingChanged() {
    for (const char* name : {"n0", "n1"}) {
      ASSERT_EQ(node(name).book().current().size(), 1U) << name;
      EXPECT_TRUE(node(name).Holds(known_)) << name;
      EXPECT_TRUE(node(name).book().history().empty()) << name;
    }
  }

  const FakeRecord known_{.counter = 5};
  std::unique_ptr<RawPeer> liar_;
};

TEST_F(HostileGossip, AForgedRecordIsRefusedAndNotFetchedAgain) {
  const FakeRecord plan{.counter = 6};
  std::string forged = BytesOf(plan);
  forged.back() ^= 1;
  Announce(IdOf(plan));
  SendWhole(IdOf(plan), forged);
  ASSERT_EQ(node("n0").bad().size(), 1U);
  EXPECT_EQ(node("n0").bad()[0],
            "liar: a record is refused: the content is another");
  liar_->Forget();
  Send(RecordSummary{{IdOf(plan)}});
  RunFor(absl::Minutes(30));
  EXPECT_TRUE(liar_->Heard<RecordWant>().empty());
  EXPECT_TRUE(liar_->Heard<RecordSummary>().empty());
  ExpectNothingChanged();
  // The honest record of that name is still taken from others.
  Offer("n1", plan);
  EXPECT_TRUE(AllHold(plan));
}

TEST_F(HostileGossip, ARecordUnderAnotherNameIsRefused) {
  // An old one, as if it were new.
  RecordId id = IdOf({.counter = 1'000'000});
  Announce(id);
  SendWhole(id, BytesOf({.counter = 4}));
  ASSERT_EQ(node("n0").bad().size(), 1U);
  EXPECT_TRUE(absl::StrContains(node("n0").bad()[0],
                                "not the record that was announced"));
  ExpectNothingChanged();
}

TEST_F(HostileGossip, OldRecordsAreNotEvenFetched) {
  Send(RecordSummary{{IdOf({.counter = 4}), IdOf(known_)}});
  RecordId unknown = IdOf({.counter = 9});
  unknown.kind = 77;
  Send(RecordSummary{{unknown}});
  SendWhole(IdOf({.counter = 4}), BytesOf({.counter = 4}));
  RunFor(absl::Minutes(1));
  EXPECT_TRUE(liar_->Heard<RecordWant>().empty());
  EXPECT_TRUE(node("n0").bad().empty());
  EXPECT_EQ(judges_["n0"].opened(), 1);
  ExpectNothingChanged();
}

TEST_F(HostileGossip, WrongPartsEndTheFetch) {
  const std::string bytes =
      BytesOf({.counter = 6, .content = std::string(100'000, 'x')});
  const auto total = static_cast<int64_t>(bytes.size());
  const auto id = [](uint64_t counter) { return IdOf({.counter = counter}); };
  struct Case {
    const char* what;
    std::vector<RecordPart> parts;
  };
  const std::vector<Case> cases = {
      {"out of order", {{{}, total, kPart, bytes.substr(kPart, kPart)}}},
      {"another total",
       {{{}, total, 0, bytes.substr(0, kPart)},
        {{}, total + 1, kPart, bytes.substr(kPart, kPart)}}},
      {"a short part", {{{}, total, 0, bytes.substr(0, 100)}}},
      {"an empty part", {{{}, total, 0, ""}}},
      {"twice the same",
       {{{}, total, 0, bytes.substr(0, kPart)},
        {{}, total, 0, bytes.substr(0, kPart)}}},
  };
  uint64_t counter = 10;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const size_t bad = node("n0").bad().size();
    Announce(id(++counter));
    for (RecordPart part : c.parts) {
      part.record = id(counter);
      Send(part);
      RunFor(absl::Milliseconds(20));
    }
    EXPECT_EQ(node("n0").bad().size(), bad + 1);
    EXPECT_EQ(node("n0").gossip().pulls().under_way(), 0);
  }
  EXPECT_EQ(judges_["n0"].opened(), 1);
  ExpectNothingChanged();
}

TEST_F(HostileGossip, ThousandsOfAnnouncementsAreBounded) {
  for (uint64_t i = 0; i < 5000; i += 50) {
    RecordSummary summary;
    for (uint64_t j = i; j < i + 50; ++j) {
      summary.records.push_back(
          IdOf({.kind = 3, .subject = absl::StrCat("box-", j)}));
    }
    Send(summary);
    RunFor(absl::Milliseconds(1));
  }
  RunFor(absl::Seconds(1));
  EXPECT_EQ(node("n0").gossip().pulls().offers(), RecordPulls::kMaxOffers);
  EXPECT_GT(node("n0").bad().size(), 10U);
  EXPECT_LE(liar_->Heard<RecordWant>().size(), 1U);
  // It never answers: it is asked less and less.
  liar_->Forget();
  RunFor(absl::Hours(2));
  EXPECT_LE(liar_->Heard<RecordWant>().size(), 25U);
  const FakeRecord plan{.counter = 6};
  Offer("n1", plan);
  EXPECT_TRUE(AllHold(plan, absl::Seconds(20)));
  liar_->Hang();
  RunFor(absl::Seconds(1));
  EXPECT_EQ(node("n0").gossip().pulls().offers(), 0U);
}

TEST_F(HostileGossip, WantsThatNeverEndAreBounded) {
  FakeRecord plan{.counter = 6};
  plan.content.assign(1 << 20, 'p');
  Offer("n0", plan);
  ASSERT_TRUE(AllHold(plan));
  liar_->Forget();
  const RecordId id = IdOf(plan);
  for (int i = 0; i < 20'000; ++i) {
    Send(RecordWant{id, 0});
    if (i % 20 == 0) RunFor(absl::Milliseconds(1));
  }
  RunFor(absl::Milliseconds(100));
  // What is allowed at once, and what came to it in the time.
  EXPECT_LT(liar_->Heard<RecordPart>().size(), 1300U);
  Send(RecordWant{id, 1 << 22});
  RunFor(absl::Seconds(10));
  Send(RecordWant{id, 1 << 22});
  Send(RecordWant{IdOf({.counter = 99}), 5});
  RunFor(absl::Milliseconds(100));
  EXPECT_FALSE(node("n0").bad().empty());
  EXPECT_EQ(liar_->Heard<RecordPart>().back().total_bytes, 0);
}

// A peer that sends a record as slowly as it may keeps it from nobody.
TEST_F(HostileGossip, ASlowPeerKeepsNoRecordBack) {
  FakeRecord plan{.counter = 6};
  plan.content.assign(300'000, 'p');
  const std::string bytes = BytesOf(plan);
  Announce(IdOf(plan));
  Send(RecordPart{IdOf(plan), static_cast<int64_t>(bytes.size()), 0,
                  bytes.substr(0, kPart)});
  RunFor(absl::Seconds(1));
  Offer("n1", plan);
  EXPECT_TRUE(AllHold(plan, absl::Seconds(8)));
}

TEST_F(HostileGossip, FetchesAtOnceAreBounded) {
  std::vector<std::unique_ptr<RawPeer>> liars;
  for (int i = 0; i < 10; ++i) {
    liars.push_back(
        std::make_unique<RawPeer>(network_, absl::StrCat("liar-", i)));
    liars.back()->Dial("n0:1");
  }
  RunFor(absl::Seconds(1));
  for (uint64_t i = 0; i < liars.size(); ++i) {
    ASSERT_TRUE(
        liars[i]->Send(RecordSummary{{IdOf({.counter = 100 + i})}}).ok());
  }
  RunFor(absl::Seconds(1));
  EXPECT_EQ(node("n0").gossip().pulls().under_way(), RecordPulls::kMaxPulls);
  // All ten are silent; an honest record still comes.
  const FakeRecord ban{.kind = 3, .subject = "box"};
  Offer("n1", ban);
  EXPECT_TRUE(AllHold(ban, absl::Minutes(1)));
  RunFor(absl::Minutes(1));
  EXPECT_LE(node("n0").gossip().pulls().under_way(), RecordPulls::kMaxPulls);
  liars.clear();
  RunFor(absl::Seconds(15));
  EXPECT_EQ(node("n0").gossip().pulls().under_way(), 0);
}

// Refusals are remembered over a new link.
TEST_F(HostileGossip, ANewLinkForgivesNothing) {
  for (int i = 0; i < 40; ++i) {
    const FakeRecord plan{.counter = static_cast<uint64_t>(10 + i)};
    Send(RecordSummary{{IdOf(plan)}});
    RunFor(absl::Milliseconds(50));
    if (!liar_->Heard<RecordWant>().empty()) {
      SendWhole(IdOf(plan), "nonsense");
    }
    liar_->Hang();
    RunFor(absl::Milliseconds(200));
    liar_->Dial("n0:1");
    RunFor(absl::Milliseconds(200));
    liar_->Forget();
  }
  // 40 links in 18 s: 1 + 2 + 4 + 8 s of pauses.
  EXPECT_LE(node("n0").bad().size(), 5U);
  ExpectNothingChanged();
}

}  // namespace
}  // namespace dfl::runtime

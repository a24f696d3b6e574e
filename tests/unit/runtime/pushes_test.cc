// What is under way to a peer, what waits, and what came early.
#include "daemon/runtime/pushes.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

const NodeId kA("a");
const NodeId kB("b");

class PushesTest : public testing::Test {
 protected:
  static Outgoing Model(const NodeId& to, int64_t round, bool top_k = false) {
    auto snapshot = std::make_shared<Snapshot>();
    snapshot->parameters.assign(4, 1.0F);
    Outgoing outgoing;
    outgoing.to = to;
    outgoing.step = round;
    outgoing.snapshot = std::move(snapshot);
    if (top_k) outgoing.format.coordinates = core::Coordinates::kTopK;
    outgoing.done = [](const absl::StatusOr<Receipt>&) {};
    return outgoing;
  }
  // The transfer that was started as the `i`-th ends.
  void End(size_t i, bool ok = true) {
    auto done = std::move(sent_[i].done);
    if (ok) {
      done(Receipt());
    } else {
      done(absl::UnavailableError("no"));
    }
  }
  std::vector<int64_t> Rounds() const {
    std::vector<int64_t> rounds;
    for (const Outgoing& outgoing : sent_) rounds.push_back(outgoing.step);
    return rounds;
  }

  std::vector<Outgoing> sent_;
  Pushes pushes_{[this](Outgoing o) { sent_.push_back(std::move(o)); }};
};

TEST_F(PushesTest, TheNewestWaitsBehindTheOneUnderWay) {
  pushes_.Send(Model(kA, 1), false);
  pushes_.Send(Model(kA, 2), false);
  pushes_.Send(Model(kA, 3), false);
  pushes_.Send(Model(kB, 4), false);
  EXPECT_EQ(Rounds(), (std::vector<int64_t>{1, 4}));
  End(0, false);
  EXPECT_EQ(Rounds(), (std::vector<int64_t>{1, 4, 3}));
  End(2);
  EXPECT_EQ(sent_.size(), 3U);
}

TEST_F(PushesTest, OneThatIsApartWaitsInItsOwnPlaceAndGoesFirst) {
  pushes_.Send(Model(kA, 1), false);
  pushes_.Send(Model(kA, 2), false);
  pushes_.Send(Model(kA, 3), true);
  pushes_.Send(Model(kA, 4), true);
  End(0);
  End(1);
  EXPECT_EQ(Rounds(), (std::vector<int64_t>{1, 4, 2}));
}

TEST_F(PushesTest, WhatIsForgottenEndsWithoutAConsequence) {
  pushes_.Send(Model(kA, 1), false);
  pushes_.Send(Model(kA, 2), false);
  pushes_.Forget();
  pushes_.Send(Model(kA, 3), false);
  pushes_.Send(Model(kA, 4), false);
  End(0);  // must not start the one that waits behind round 3
  EXPECT_EQ(Rounds(), (std::vector<int64_t>{1, 3}));
  pushes_.DropWaiting();
  End(1);
  EXPECT_EQ(Rounds(), (std::vector<int64_t>{1, 3}));
}

TEST_F(PushesTest, TopKKeepsOneReferenceForEachPeer) {
  pushes_.Send(Model(kA, 1, true), false);
  pushes_.Send(Model(kB, 1, true), false);
  ASSERT_NE(sent_[0].reference, nullptr);
  EXPECT_NE(sent_[0].reference, sent_[1].reference);
  const auto first = sent_[0].reference;
  End(0);
  pushes_.Send(Model(kA, 2, true), false);
  EXPECT_EQ(sent_[2].reference, first);
  End(2);
  pushes_.ForgetReferences();
  pushes_.Send(Model(kA, 3, true), false);
  EXPECT_NE(sent_[3].reference, first);
  const auto second = sent_[3].reference;
  pushes_.Forget(kA);
  pushes_.Send(Model(kA, 4, true), false);
  EXPECT_NE(sent_[4].reference, second);
  EXPECT_EQ(sent_[4].step, 4);
}

TEST(EarlyPushesTest, TheNewestAreKeptAndHandedOnWhenTheirGraphComes) {
  EarlyPushes early;
  const auto keep = [&early](const NodeId& from, int64_t round) {
    core::RemoteModel model;
    model.step = round;
    early.Keep(from, std::move(model));
  };
  for (const int64_t round : {5, 7, 6}) keep(kB, round);
  keep(kA, 6);
  std::vector<std::string> delivered;
  const auto deliver = [&delivered](const NodeId& from,
                                    const core::RemoteModel& model) {
    delivered.push_back(absl::StrCat(from.name(), model.step));
  };
  early.Deliver([](int64_t round) { return round > 5; }, deliver);
  EXPECT_TRUE(delivered.empty());
  early.Deliver([](int64_t round) { return round > 6; }, deliver);
  EXPECT_EQ(delivered, (std::vector<std::string>{"a6", "b6"}));
  early.Clear();
  early.Deliver([](int64_t) { return false; }, deliver);
  EXPECT_EQ(delivered.size(), 2U);
}

}  // namespace
}  // namespace dfl::runtime

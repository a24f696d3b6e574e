#include "daemon/runtime/keeper/run_keeper.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/base/rng.h"
#include "daemon/simports/sim_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using simports::SimFiles;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Fields on lines of their own, and "." at the end of a whole one.
class LinesCodec final : public StateCodec {
 public:
  absl::StatusOr<std::string> Encode(
      const StateGeneration& generation) const override {
    const RunState& state = generation.state;
    return absl::StrCat(
        generation.number, "\n", state.node, "\n", state.starts, "\n",
        state.plan->text, "\n", state.plan->version, "\n", state.plan->run_id,
        "\n", static_cast<int>(state.desired_phase), "\n",
        absl::StrJoin(state.added_peers, " "), "\n", state.obeyed_order, "\n.");
  }
  absl::StatusOr<StateGeneration> Decode(
      const std::string& bytes) const override {
    const std::vector<std::string> lines = absl::StrSplit(bytes, '\n');
    if (lines.size() != 10 || lines[9] != ".") {
      return absl::DataLossError("it is torn");
    }
    StateGeneration generation;
    KeptPlan plan{lines[3], 0, lines[5]};
    int phase = 0;
    EXPECT_TRUE(absl::SimpleAtoi(lines[0], &generation.number));
    EXPECT_TRUE(absl::SimpleAtoi(lines[2], &generation.state.starts));
    EXPECT_TRUE(absl::SimpleAtoi(lines[4], &plan.version));
    EXPECT_TRUE(absl::SimpleAtoi(lines[6], &phase));
    generation.state.node = lines[1];
    generation.state.plan = std::make_shared<KeptPlan>(plan);
    generation.state.desired_phase = static_cast<DesiredPhase>(phase);
    generation.state.added_peers =
        absl::StrSplit(lines[7], ' ', absl::SkipEmpty());
    EXPECT_TRUE(absl::SimpleAtoi(lines[8], &generation.state.obeyed_order));
    return generation;
  }
};

const LinesCodec kCodec;

KeptPlan Plan(uint64_t version, const std::string& run = "run-1") {
  return {absl::StrCat("plan ", version), version, run};
}

class RunKeeperTest : public testing::Test {
 protected:
  // The next start on the same disk.
  RunKeeper Start() {
    RunKeeper keeper(files_, kCodec, "box-7");
    const auto begun = keeper.Begin();
    EXPECT_TRUE(begun.ok()) << begun.status();
    if (begun.ok()) found_ = begun->found;
    return keeper;
  }
  SimFiles files_;
  bool found_ = false;
};

const absl::Status kFull = absl::ResourceExhaustedError("full");

TEST_F(RunKeeperTest, AFreshDiskHoldsNothing) {
  const RunKeeper keeper = Start();
  EXPECT_FALSE(found_);
  EXPECT_EQ(keeper.known()->version, 0u);
  EXPECT_EQ(keeper.accepted_version(), 0u);
  EXPECT_EQ(keeper.version_in_force(), 0u);
  EXPECT_EQ(keeper.starts(), 1u);
  EXPECT_EQ(keeper.desired_phase(), DesiredPhase::kIdle);
  EXPECT_THAT(keeper.added_peers(), IsEmpty());
}

TEST_F(RunKeeperTest, StartsAreCountedOnceTheyAreWritten) {
  ASSERT_TRUE(Start().Save().ok());
  ASSERT_TRUE(Start().Save().ok());
  EXPECT_EQ(Start().starts(), 3u);
  EXPECT_EQ(Start().starts(), 3u);  // that one wrote nothing
  EXPECT_TRUE(found_);
}

TEST_F(RunKeeperTest, APlanIsKnownThenAcceptedThenInForce) {
  {
    RunKeeper keeper = Start();
    ASSERT_TRUE(keeper.Accept(Plan(3)).ok());
    EXPECT_EQ(keeper.accepted_version(), 3u);
    EXPECT_EQ(keeper.version_in_force(), 0u);
    keeper.NoteInForce(3);
    EXPECT_EQ(keeper.version_in_force(), 3u);
  }
  RunKeeper keeper = Start();
  EXPECT_EQ(keeper.known()->text, "plan 3");
  EXPECT_EQ(keeper.accepted_version(), 0u);
  EXPECT_EQ(keeper.version_in_force(), 0u);
  ASSERT_TRUE(keeper.TakeUp(*keeper.known()).ok());
  EXPECT_EQ(keeper.accepted_version(), 3u);
}

TEST_F(RunKeeperTest, OnlyAHigherVersionFollows) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.Accept(Plan(3)).ok());
  EXPECT_EQ(*keeper.Judge(Plan(4), 3), RunKeeper::Offer::kNew);
  EXPECT_EQ(*keeper.Judge(Plan(4), std::nullopt), RunKeeper::Offer::kNew);
  EXPECT_EQ(*keeper.Judge(Plan(3), 3), RunKeeper::Offer::kUnchanged);
  EXPECT_EQ(*keeper.Judge(Plan(3), 2), RunKeeper::Offer::kUnchanged);
  const absl::Status stale = keeper.Judge(Plan(4), 2).status();
  EXPECT_EQ(stale.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(stale.message()),
              HasSubstr("holds plan version 3, not 2"));
  KeptPlan other = Plan(3);
  other.text = "another";
  const absl::Status low = keeper.Judge(other, 3).status();
  EXPECT_EQ(low.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(low.message()), HasSubstr("a higher version"));
}

// A stored plan that did not fit at the start can be given again.
TEST_F(RunKeeperTest, WhatIsKnownButNotAcceptedIsNew) {
  ASSERT_TRUE(Start().Accept(Plan(3)).ok());
  EXPECT_EQ(*Start().Judge(Plan(3), 3), RunKeeper::Offer::kNew);
}

TEST_F(RunKeeperTest, APlanThatCannotBeWrittenIsNotAccepted) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.Accept(Plan(3), DesiredPhase::kTraining).ok());
  files_.FailWith(kFull);
  EXPECT_EQ(keeper.Accept(Plan(4, "run-2")), kFull);
  EXPECT_EQ(keeper.known()->version, 3u);
  EXPECT_EQ(keeper.accepted_version(), 3u);
  EXPECT_EQ(keeper.desired_phase(), DesiredPhase::kTraining);
}

TEST_F(RunKeeperTest, APlanThatTheNodeRefusesIsTakenBack) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.Accept(Plan(3), DesiredPhase::kTraining).ok());
  ASSERT_TRUE(keeper.Accept(Plan(4, "run-2")).ok());
  ASSERT_TRUE(keeper.TakeBack().ok());
  EXPECT_EQ(keeper.accepted_version(), 3u);
  const RunKeeper next = Start();
  EXPECT_EQ(next.known()->version, 3u);
  EXPECT_EQ(next.desired_phase(), DesiredPhase::kTraining);
}

TEST_F(RunKeeperTest, WhatIsWantedLastsAsLongAsTheRun) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.Accept(Plan(1)).ok());
  ASSERT_TRUE(keeper.Want(DesiredPhase::kPaused, "run-1").ok());
  ASSERT_TRUE(keeper.Accept(Plan(2)).ok());
  EXPECT_EQ(Start().desired_phase(), DesiredPhase::kPaused);
  ASSERT_TRUE(keeper.Accept(Plan(3, "run-2")).ok());
  EXPECT_EQ(Start().desired_phase(), DesiredPhase::kIdle);
  // An order that was given to the run before.
  ASSERT_TRUE(keeper.Want(DesiredPhase::kTraining, "run-1").ok());
  EXPECT_EQ(Start().desired_phase(), DesiredPhase::kIdle);
}

TEST_F(RunKeeperTest, ASignedOrderIsObeyedOnceAlsoAfterARestart) {
  RunKeeper keeper = Start();
  EXPECT_EQ(keeper.obeyed_order(), 0u);
  ASSERT_TRUE(keeper.Accept(Plan(1)).ok());
  ASSERT_TRUE(keeper.Obey(DesiredPhase::kTraining, "run-1", 4).ok());
  // A later order of this node alone.
  ASSERT_TRUE(keeper.Want(DesiredPhase::kPaused, "run-1").ok());
  const RunKeeper next = Start();
  EXPECT_EQ(next.obeyed_order(), 4u);
  EXPECT_EQ(next.desired_phase(), DesiredPhase::kPaused);
}

TEST_F(RunKeeperTest, APlanThatCameAsARecordPassesByItsOwnOrder) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.Accept(Plan(7)).ok());
  KeptPlan other = Plan(7);
  other.text = "another plan 7";
  EXPECT_FALSE(keeper.Judge(other, std::nullopt).ok());
  EXPECT_EQ(keeper.JudgeOrdered(other), RunKeeper::Offer::kNew);
  EXPECT_EQ(keeper.JudgeOrdered(Plan(7)), RunKeeper::Offer::kUnchanged);
  EXPECT_EQ(Start().JudgeOrdered(Plan(7)), RunKeeper::Offer::kNew)
      << "it is known, and the node has not got it yet";
}

TEST_F(RunKeeperTest, ARestartKeepsWhatWasWantedOnAFullDiskToo) {
  ASSERT_TRUE(Start().Accept(Plan(1), DesiredPhase::kTraining).ok());
  RunKeeper keeper = Start();
  files_.set_capacity(0);
  EXPECT_EQ(keeper.TakeUp(*keeper.known()).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(keeper.accepted_version(), 1u);
  EXPECT_EQ(keeper.desired_phase(), DesiredPhase::kTraining);
}

TEST_F(RunKeeperTest, AddressesLastUnlessTheyCannotBeWritten) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.AddPeer("a:1").ok());
  ASSERT_TRUE(keeper.AddPeer("b:2").ok());
  ASSERT_TRUE(keeper.RemovePeer("a:1").ok());
  ASSERT_TRUE(keeper.RemovePeer("c:3").ok());
  EXPECT_THAT(Start().added_peers(), ElementsAre("b:2"));
  files_.FailWith(kFull);
  EXPECT_EQ(keeper.AddPeer("d:4"), kFull);
  EXPECT_EQ(keeper.RemovePeer("b:2"), kFull);
  EXPECT_THAT(keeper.added_peers(), IsEmpty());
}

TEST_F(RunKeeperTest, ATornWriteLeavesThePlanBefore) {
  RunKeeper keeper = Start();
  ASSERT_TRUE(keeper.Accept(Plan(1)).ok());
  ASSERT_TRUE(keeper.Accept(Plan(2)).ok());
  files_.TearLastWrite();
  RunKeeper next(files_, kCodec, "box-7");
  const auto begun = next.Begin();
  ASSERT_TRUE(begun.ok()) << begun.status();
  EXPECT_THAT(begun->note, HasSubstr("the other generation, 1"));
  EXPECT_EQ(next.known()->version, 1u);
}

}  // namespace
}  // namespace dfl::runtime

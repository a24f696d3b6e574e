// What peers said, and who takes part.
#include "daemon/runtime/peer_table.h"

#include <memory>
#include <set>
#include <utility>

#include "daemon/core/plan/derived_plan.h"
#include "gtest/gtest.h"

namespace dfl::runtime {
namespace {

using Change = PeerTable::Change;
using ports::Phase;
using ports::RefuseReason;

const NodeId kSelf("n0");
const NodeId kPeer("n1");

class PeerTableTest : public testing::Test {
 protected:
  // `hostile` > 0: so many members may be, of five in place of three.
  void Adopt(const std::string& run_id, const std::string& algorithm,
             int64_t hostile = 0) {
    core::RunPlan plan;
    plan.version = 1;
    plan.run_id = run_id;
    for (const char* name : {"n0", "n1", "n2"}) {
      plan.members.push_back(core::MemberSpec{.node = NodeId(name)});
    }
    if (hostile > 0) {
      plan.aggregation.rule = core::AggregationRule::kMedian;
      plan.aggregation.hostile = hostile;
      plan.topology.kind = "complete";
      for (const char* name : {"n3", "n4"}) {
        plan.members.push_back(core::MemberSpec{.node = NodeId(name)});
      }
    }
    plan.model.kind = "linear";
    plan.model.classes = 0;
    plan.model.hidden.clear();
    plan.algorithm.name = algorithm;
    plan.codec.format = core::MessageFormat{};
    auto derived = core::CheckAndDerive(plan, kSelf);
    ASSERT_TRUE(derived.ok()) << derived.status();
    run_.Adopt(derived->checked.plan, derived->node);
    run_.SetContract(core::DataContract());
    table_.CompareAll();
  }
  ports::StateFrame State(Phase phase, int64_t step = 0) {
    ports::StateFrame state;
    state.run_id = "run";
    state.contract = run_.contract_digest();
    state.algorithm = "decefl";
    state.phase = phase;
    state.step = step;
    return state;
  }

  RunInForce run_{kSelf};
  std::set<NodeId> linked_{kPeer, NodeId("n2")};
  PeerTable table_{
      run_, [this](const NodeId& peer) { return linked_.count(peer) > 0; }};
};

TEST_F(PeerTableTest, BeforeThereIsAPlanNobodyTakesPart) {
  table_.OnState(kPeer, State(Phase::kTraining));
  EXPECT_FALSE(table_.TakesPart(kPeer));
}

TEST_F(PeerTableTest, NamesWhatKeepsAPeerFromMixing) {
  EXPECT_EQ(table_.Mismatch(kPeer, true)->reason, RefuseReason::kNotReady);
  Adopt("run", "decefl");
  EXPECT_EQ(table_.Mismatch(kPeer, true)->reason, RefuseReason::kNotReady);
  table_.OnState(kPeer, State(Phase::kTraining));
  EXPECT_FALSE(table_.Mismatch(kPeer, true));
  ports::StateFrame other = State(Phase::kTraining);
  other.algorithm = "gossip";
  table_.OnState(kPeer, other);
  EXPECT_EQ(table_.Mismatch(kPeer, true)->reason,
            RefuseReason::kOtherAlgorithm);
  EXPECT_FALSE(table_.Mismatch(kPeer, false));
  other.contract[1] ^= 1;
  table_.OnState(kPeer, other);
  EXPECT_EQ(table_.Mismatch(kPeer, false)->reason, RefuseReason::kOtherModel);
  other.run_id = "";
  table_.OnState(kPeer, other);
  EXPECT_EQ(table_.Mismatch(kPeer, false)->reason, RefuseReason::kOtherRun);
  table_.OnLink(kPeer);
  EXPECT_EQ(table_.Mismatch(kPeer, false)->reason, RefuseReason::kNotReady);
}

TEST_F(PeerTableTest, ANewPlanComparesEveryPeerAnew) {
  Adopt("run", "decefl");
  table_.OnState(kPeer, State(Phase::kTraining));
  EXPECT_TRUE(table_.TakesPart(kPeer));
  Adopt("other", "decefl");
  EXPECT_FALSE(table_.TakesPart(kPeer));
}

// A network may live long: nothing is kept of those who have gone.
TEST_F(PeerTableTest, StrangersThatAreNotLinkedAreForgotten) {
  Adopt("run", "decefl");
  const NodeId stranger("n9");
  linked_.insert(stranger);
  for (const NodeId& peer : {kPeer, stranger}) {
    table_.OnState(peer, State(Phase::kTraining));
  }
  table_.ForgetStrangers();
  EXPECT_EQ(table_.all().count(stranger), 1u);
  linked_.erase(stranger);
  linked_.erase(kPeer);  // a member may come back
  table_.ForgetStrangers();
  EXPECT_EQ(table_.all().count(stranger), 0u);
  EXPECT_EQ(table_.all().count(kPeer), 1u);
}

TEST_F(PeerTableTest, TellsEachChangeOnce) {
  Adopt("run", "decefl");
  EXPECT_EQ(table_.Refresh(kPeer, std::nullopt), Change::kNone);
  table_.OnState(kPeer, State(Phase::kTraining));
  EXPECT_EQ(table_.Refresh(kPeer, std::nullopt), Change::kJoined);
  EXPECT_EQ(table_.Refresh(kPeer, std::nullopt), Change::kNone);
  linked_.erase(kPeer);
  EXPECT_EQ(table_.Refresh(kPeer, 0), Change::kLeft);
  EXPECT_EQ(table_.Refresh(kPeer, 0), Change::kNone);
  linked_.insert(kPeer);
  table_.Refresh(kPeer, std::nullopt);
  table_.Untell(kPeer);
  EXPECT_EQ(table_.Refresh(kPeer, std::nullopt), Change::kJoined);
}

TEST_F(PeerTableTest, OneThatLeavesAheadOfTheRoundCountsUntilTheBoundary) {
  Adopt("run", "decefl");
  table_.OnState(kPeer, State(Phase::kTraining, 3));
  table_.Refresh(kPeer, std::nullopt);
  table_.OnState(kPeer, State(Phase::kFinished, 4));
  EXPECT_EQ(table_.Refresh(kPeer, 3), Change::kNone);
  EXPECT_EQ(table_.TakeLeaving(), std::set<NodeId>{kPeer});
  EXPECT_TRUE(table_.TakeLeaving().empty());
  EXPECT_EQ(table_.Refresh(kPeer, std::nullopt), Change::kLeft);
}

TEST_F(PeerTableTest, TellsWhatTwoPeersSayAndWhatCameWhole) {
  Adopt("run", "decefl");
  const auto by_one = [&](int64_t exchange = 10) {
    return table_.FurthestRounds(kSelf, 10, exchange).by_one;
  };
  const auto by_several = [&] {
    return table_.FurthestRounds(kSelf, 10, 10).by_several;
  };
  EXPECT_EQ(by_one(), 10);
  table_.OnState(kPeer, State(Phase::kTraining, 12));
  EXPECT_EQ(by_one(), 10);  // it only says so
  table_.HearWhole(kPeer, 12);
  EXPECT_EQ(by_one(), 12);
  EXPECT_EQ(by_one(12), 10);  // it may yet wait
  table_.HearStep(kPeer, 5000);
  EXPECT_EQ(by_one(), 12);
  EXPECT_EQ(by_several(), 10);
  table_.OnState(NodeId("n2"), State(Phase::kTraining, 4000));
  EXPECT_EQ(by_several(), 4000);
  table_.ForgetWhole();
  EXPECT_EQ(by_one(), 10);
}

TEST_F(PeerTableTest, WhereTwoMayBeHostileAThirdMustSaySo) {
  Adopt("run", "decefl", 2);
  linked_.insert(NodeId("n3"));
  for (const auto& [peer, step] :
       {std::pair("n1", 4000), std::pair("n2", 5000)}) {
    table_.OnState(NodeId(peer), State(Phase::kTraining, step));
  }
  EXPECT_EQ(table_.FurthestRounds(kSelf, 10, 10).by_several, 10);
  table_.OnState(NodeId("n3"), State(Phase::kTraining, 12));
  EXPECT_EQ(table_.FurthestRounds(kSelf, 10, 10).by_several, 12);
}

TEST_F(PeerTableTest, StepsOnlyGrowByHearsayAndAreBounded) {
  table_.HearStep(kPeer, 9);
  table_.HearStep(kPeer, 4);
  EXPECT_EQ(table_.all().at(kPeer).state.step, 9);
  table_.HearStep(kPeer, INT64_MAX);
  EXPECT_EQ(table_.all().at(kPeer).state.step, kLargestStep);
  EXPECT_EQ(table_.OnState(kPeer, State(Phase::kIdle, INT64_MAX)).state.step,
            kLargestStep);
}

TEST_F(PeerTableTest, CountsByPeerAndInAll) {
  table_.CountSent(kPeer, 40);
  table_.CountSent(NodeId("n2"), 40);
  table_.CountReceived(kPeer);
  table_.CountMissed(kPeer);
  table_.CountRejected(kPeer, {RefuseReason::kBusy, ""});
  const PeerTable::Peer& peer = table_.all().at(kPeer);
  EXPECT_EQ(peer.models_sent, 1);
  EXPECT_EQ(peer.models_received, 1);
  EXPECT_EQ(peer.missed, 1);
  EXPECT_EQ(peer.rejected, 1);
  EXPECT_EQ(table_.models_sent(), 2);
  EXPECT_EQ(table_.dense_bytes_sent(), 80);
  EXPECT_EQ(table_.models_received(), 1);
  EXPECT_EQ(table_.missed(), 1);
  EXPECT_EQ(table_.rejected().at(ports::RefuseReasonName(RefuseReason::kBusy)),
            1);
}

}  // namespace
}  // namespace dfl::runtime

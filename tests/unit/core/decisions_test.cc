#include "daemon/core/algorithm/decisions.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

const std::vector<NodeId>& Peers() {
  static const auto* const kPeers =
      new std::vector<NodeId>{NodeId("a"), NodeId("b"), NodeId("c")};
  return *kPeers;
}

// One draw of every kind that has a generator.
std::string DrawAll(Decisions& decisions) {
  std::string drawn;
  for (const NodeId& peer : decisions.ChooseNeighbours(Peers(), 2)) {
    absl::StrAppend(&drawn, peer.name(), " ");
  }
  absl::StrAppend(&drawn, decisions.NameCoordinates(Peers()[0]), " ");
  for (const char* purpose : {"compute", "send"}) {
    absl::StrAppend(&drawn, decisions.Happens(purpose, Peers()[0], 0.5), " ",
                    decisions.DrawWait(purpose, 1), " ");
    for (const int64_t l : decisions.ChooseCoordinates(purpose, 100, 5)) {
      absl::StrAppend(&drawn, l, " ");
    }
  }
  return drawn;
}

TEST(SeededDecisionsPurposes, DoNotDisturbEachOther) {
  SeededDecisions alone(5, 1);
  SeededDecisions among(5, 1);
  for (int i = 0; i < 50; ++i) {
    among.Happens("send", Peers()[1], 0.3);
    among.DrawWait("wake", 2);
    among.ChooseCoordinates("replica", 10, 3);
    among.NameCoordinates(Peers()[2]);
    among.ChooseNeighbours(Peers(), 1);
    EXPECT_EQ(alone.Happens("compute", Peers()[0], 0.5),
              among.Happens("compute", Peers()[0], 0.5));
    EXPECT_EQ(alone.DrawWait("send", 1), among.DrawWait("send", 1));
    EXPECT_EQ(alone.ChooseCoordinates("h", 100, 5),
              among.ChooseCoordinates("h", 100, 5));
  }
}

TEST(SeededDecisionsPurposes, DifferInWhatTheyDraw) {
  SeededDecisions decisions(5);
  EXPECT_NE(decisions.DrawWait("send", 1), decisions.DrawWait("wake", 1));
  EXPECT_NE(decisions.ChooseCoordinates("g", 1000, 9),
            decisions.ChooseCoordinates("h", 1000, 9));
  SeededDecisions restarted(5, 1);
  EXPECT_NE(SeededDecisions(5).DrawWait("send", 1),
            restarted.DrawWait("send", 1));
}

TEST(SeededDecisionsState, GoesOnBitForBit) {
  SeededDecisions decisions(7, 3);
  for (int i = 0; i < 20; ++i) DrawAll(decisions);
  const DecisionsState state = decisions.ExportState();
  SeededDecisions restored(0);
  ASSERT_TRUE(restored.ImportState(state).ok());
  EXPECT_EQ(restored.ExportState(), state);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(DrawAll(restored), DrawAll(decisions));
  }
  // So do a generator that was never drawn from and what a node draws once.
  EXPECT_EQ(restored.DrawWait("new", 1), decisions.DrawWait("new", 1));
  EXPECT_EQ(restored.DrawFrom("kappa", {1, 1000}),
            decisions.DrawFrom("kappa", {1, 1000}));
}

TEST(SeededDecisionsState, HoldsOneGeneratorForEachPurpose) {
  SeededDecisions decisions(7);
  EXPECT_TRUE(decisions.ExportState().generators.empty());
  DrawAll(decisions);
  DrawAll(decisions);
  EXPECT_EQ(decisions.ExportState().generators.size(), 8U);
}

TEST(SeededDecisionsState, AGeneratorOfZerosIsRefused) {
  SeededDecisions decisions(7);
  DrawAll(decisions);
  const DecisionsState before = decisions.ExportState();
  DecisionsState bad = before;
  bad.generators["neighbours"] = {0, 0, 0, 0};
  EXPECT_EQ(decisions.ImportState(bad).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(decisions.ExportState(), before);
}

}  // namespace
}  // namespace dfl::core

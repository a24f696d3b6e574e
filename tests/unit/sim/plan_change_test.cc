// Changes of the plan at run time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "daemon/sim/results.h"
#include "daemon/sim/simulation.h"
#include "tests/unit/sim/play.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

constexpr char kDpsgd[] = "{name: d-psgd, knobs: {eta: 0.05}}";

TEST(PlanChange, EveryNodeTakesItAndGoesOn) {
  const Result result = RunTwice(SmallScenario(
      "  events:\n"
      "    - {at: 300ms, within: 200ms, change: {algorithm: {name: d-psgd,\n"
      "       knobs: {eta: 0.05}}, topology: {kind: complete}}}\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_EQ(result.changes.size(), 1);
  EXPECT_EQ(result.changes[0].version, 2);
  EXPECT_EQ(result.changes[0].time_s, 0.3);
  // The last of them by the draws, and at its next boundary.
  ASSERT_TRUE(result.changes[0].in_force_s.has_value());
  EXPECT_GT(*result.changes[0].in_force_s, 0.4);
  EXPECT_LT(*result.changes[0].in_force_s, 0.6);
  ASSERT_EQ(result.nodes.size(), 8);
  for (const NodeScore& node : result.nodes) EXPECT_EQ(node.plan_version, 2);
  EXPECT_EQ(result.steps, 8 * 120);
}

TEST(PlanChange, AtOnceWithoutATime) {
  const Result result = RunTwice(SmallScenario(
      "  events: [{at: 300ms, change: {topology: {kind: complete}}}]\n"));
  ASSERT_EQ(result.changes.size(), 1);
  EXPECT_LT(result.changes[0].in_force_s.value_or(9), 0.33);
}

// Complete: the mean of all after each step. Alone: nobody agrees.
TEST(PlanChange, WhatRunsIsTheNewPlan) {
  const std::string apart = "{name: local, knobs: {eta: 0.05}}";
  const Result alone = RunTwice(SmallScenario("", apart));
  const Result together = RunTwice(SmallScenario(
      "  events: [{at: 600ms, change: {algorithm: {name: d-psgd, knobs: {eta: "
      "0.05}}, topology: {kind: complete}}}]\n",
      apart));
  EXPECT_LT(together.rows.back().consensus_error,
            0.1 * alone.rows.back().consensus_error);
}

TEST(PlanChange, OneThatIsDownTakesItWhenItIsBack) {
  const Result result = RunTwice(
      SmallScenario("  events:\n"
                    "    - {at: 200ms, crash: n2, for: 400ms}\n"
                    "    - {at: 300ms, change: {topology: {kind: complete}}}\n"
                    "    - {at: 500ms, change: {batch_size: 20}}\n"
                    "    - {at: 700ms, join: n3}\n",
                    kDpsgd));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_EQ(result.nodes.size(), 8);
  for (const NodeScore& node : result.nodes) {
    EXPECT_EQ(node.plan_version, 3) << node.name;
  }
}

// As dfld's nodes do: one is given it, and all pass it on.
TEST(PlanChange, OneGivenToOneNodeReachesAllByGossip) {
  const Result result = RunTwice(
      SmallScenario("  plans: gossip\n"
                    "  events: [{at: 300ms, change: {batch_size: 20}}]\n",
                    kDpsgd));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_EQ(result.changes.size(), 1);
  EXPECT_EQ(result.changes[0].time_s, 0.3);
  ASSERT_TRUE(result.changes[0].in_force_s.has_value());
  EXPECT_LT(*result.changes[0].in_force_s, 0.5);
  ASSERT_EQ(result.nodes.size(), 8);
  for (const NodeScore& node : result.nodes) {
    EXPECT_EQ(node.plan_version, 2) << node.name;
  }
  EXPECT_EQ(result.steps, 8 * 120);
}

TEST(PlanChange, ByGossipOneThatWasDownLearnsOfItFromItsNeighbours) {
  const Result result = RunTwice(
      SmallScenario("  plans: gossip\n"
                    "  events:\n"
                    "    - {at: 200ms, crash: n2, for: 400ms}\n"
                    "    - {at: 300ms, change: {topology: {kind: complete}}}\n"
                    "    - {at: 500ms, change: {batch_size: 20}}\n"
                    "    - {at: 700ms, join: n3}\n",
                    kDpsgd));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_EQ(result.nodes.size(), 8);
  for (const NodeScore& node : result.nodes) {
    EXPECT_EQ(node.plan_version, 3) << node.name;
  }
}

// Nothing is waited for that comes after the end, but what was given out is
// taken.
TEST(PlanChange, EndsWithTheRun) {
  const Result late = RunTwice(SmallScenario(
      "  events: [{at: 1m, change: {topology: {kind: complete}}}]\n"));
  EXPECT_TRUE(late.changes.empty());
  EXPECT_LT(late.rows.back().time_s, 10);
  const Result slow = RunTwice(SmallScenario(
      "  events:\n"
      "    - {at: 300ms, within: 1m, change: {topology: {kind: complete}}}\n"));
  for (const NodeScore& node : slow.nodes) EXPECT_EQ(node.plan_version, 2);
}

TEST(PlanChange, TheStopRuleMayChange) {
  const Result result =
      RunTwice(SmallScenario("  events: [{at: 300ms, change: {stop: {steps: "
                             "150}}}]\n"));
  EXPECT_EQ(result.rows.back().lowest_step, 150);
}

TEST(PlanChange, WhatIsConservedIsThatOfTheNewAlgorithm) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario(
          "  events: [{at: 500ms, within: 100ms, change: {algorithm: {name: "
          "spod-gt, knobs: {eta: 0.01}}, topology: {kind: complete}}}]\n",
          "{name: depositum, knobs: {alpha: 0.01}}"),
      {{"coordinates: random", "coordinates: dense"}}));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_TRUE(result.rows.back().mass_drift.has_value());
  EXPECT_LT(*result.rows.back().mass_drift, 1e-4);
}

TEST(Leaving, TheOthersGoOnAndAreWhatIsMeasured) {
  const Result result = RunTwice(
      SmallScenario("  events: [{at: 400ms, leave: n5, within: 100ms}]\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.crashes, 0);
  EXPECT_EQ(result.rows.back().nodes, 7);
  ASSERT_EQ(result.nodes.size(), 7);
  for (const NodeScore& node : result.nodes) {
    EXPECT_NE(node.name, "n5");
    EXPECT_EQ(node.plan_version, 2) << node.name;
  }
}

// The optimum of those that are left is another one.
TEST(Leaving, WhatIsLearnedIsWhatTheOthersHave) {
  const std::string nids = "{name: nids, knobs: {alpha: 0.02}}";
  const auto dense = [&](const std::string& network) {
    return absl::StrReplaceAll(SmallScenario(network, nids),
                               {{"coordinates: random", "coordinates: dense"},
                                {"batch_size: 10", "batch_size: 30"},
                                {"steps: 120", "steps: 1500"}});
  };
  const Result left = RunTwice(dense("  events: [{at: 100ms, leave: n7}]\n"));
  EXPECT_EQ(left.end, End::kFinished) << left.why;
  // All seven agree: f is least there, so no node's model is better by f.
  EXPECT_LT(left.rows.back().consensus_error, 1e-6);
  const Result gone = RunTwice(dense("  events: [{at: 100ms, crash: n7}]\n"));
  EXPECT_LT(gone.rows.back().consensus_error, 1e-6);
  // f of the eight, at what the seven learned, is more than f of the seven.
  EXPECT_GT(gone.rows.back().loss_mean_model, left.rows.back().loss_mean_model);
}

TEST(Leaving, WhatItHeldBeginsANewEpoch) {
  const Result result = RunTwice(absl::StrReplaceAll(
      SmallScenario("  events: [{at: 500ms, leave: n5, within: 100ms}]\n",
                    "{name: depositum, knobs: {alpha: 0.01}}"),
      {{"coordinates: random", "coordinates: dense"}}));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_TRUE(result.rows.back().mass_drift.has_value());
  EXPECT_LT(*result.rows.back().mass_drift, 1e-4);
}

TEST(Leaving, OneThatLeftMayJoinAgain) {
  const Result result =
      RunTwice(SmallScenario("  events:\n"
                             "    - {at: 300ms, crash: n5, for: 200ms}\n"
                             "    - {at: 400ms, leave: n5, within: 300ms}\n"
                             "    - {at: 600ms, join: n5, within: 100ms}\n",
                             kDpsgd));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  ASSERT_EQ(result.nodes.size(), 8);
  for (const NodeScore& node : result.nodes) {
    EXPECT_EQ(node.plan_version, 3) << node.name;
    EXPECT_EQ(node.step, 120) << node.name;
  }
  EXPECT_LT(result.steps, 8 * 120);
}

TEST(PlanChange, IsInTheSummary) {
  const std::string text = SmallScenario(
      "  events: [{at: 300ms, change: {topology: {kind: complete}}}]\n");
  const auto summary =
      SummaryJson(*ParseScenario(text, "s.yaml"), RunTwice(text));
  ASSERT_EQ(summary["changes"].size(), 1);
  EXPECT_EQ(summary["changes"][0]["plan_version"], 2);
  EXPECT_EQ(summary["changes"][0]["time_s"], 0.3);
  EXPECT_TRUE(summary["changes"][0].contains("in_force_s"));
  EXPECT_EQ(summary["last_nodes"][0]["plan_version"], 2);
}

}  // namespace
}  // namespace dfl::sim

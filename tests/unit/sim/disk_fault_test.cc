// Disks that tear, fill up and get lost: the node is back in the run, and no
// incarnation comes twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/sim/simulation.h"
#include "tests/unit/sim/play.h"
#include "tests/unit/sim/scenarios.h"

namespace dfl::sim {
namespace {

// Two crashes, each while the fault is there; the plan changes before the
// first, between them and while the node is down.
std::string TwoCrashes(const std::string& fault) {
  return SmallScenario(
      absl::StrCat("  events:\n"
                   "    - {at: 100ms, change: {batch_size: 11}}\n"
                   "    - {at: 200ms, disk: n5, fault: ",
                   fault,
                   ", for: 600ms}\n"
                   "    - {at: 300ms, crash: n5, for: 100ms}\n"
                   "    - {at: 500ms, change: {batch_size: 12}}\n"
                   "    - {at: 600ms, crash: n5, for: 100ms}\n"
                   "    - {at: 650ms, change: {batch_size: 13}}\n"));
}

class DiskFaults : public testing::TestWithParam<std::string> {};

TEST_P(DiskFaults, TheNodeIsBackInTheRunWithTheNewestPlan) {
  const std::string text = TwoCrashes(GetParam());
  const Result result = RunTwice(text);
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.crashes, 2);
  ASSERT_EQ(result.nodes.size(), 8);
  for (const NodeScore& node : result.nodes) {
    EXPECT_EQ(node.step, 120) << node.name;
    EXPECT_EQ(node.plan_version, 4) << node.name;
    const std::set<uint64_t> different(node.incarnations.begin(),
                                       node.incarnations.end());
    EXPECT_EQ(different.size(), node.incarnations.size()) << node.name;
    EXPECT_EQ(node.incarnations.size(), node.name == "n5" ? 3 : 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, DiskFaults,
                         testing::Values("torn", "full", "lost"),
                         [](const auto& info) { return info.param; });

TEST(DiskFault, WhatIsTornIsTheLastGenerationAlone) {
  const Result result = RunTwice(TwoCrashes("torn"));
  EXPECT_EQ(result.states_lost, 0);
  EXPECT_EQ(result.writes_failed, 0);
}

TEST(DiskFault, ATornFirstWriteIsANewNode) {
  const Result result =
      RunTwice(SmallScenario("  events:\n"
                             "    - {at: 200ms, disk: n5, fault: torn}\n"
                             "    - {at: 300ms, crash: n5, for: 100ms}\n"));
  EXPECT_EQ(result.end, End::kFinished) << result.why;
  EXPECT_EQ(result.states_lost, 1);
  EXPECT_EQ(result.rows.back().lowest_step, 120);
}

TEST(DiskFault, AFullDiskRefusesThePlanUntilThereIsRoom) {
  const Result never =
      RunTwice(SmallScenario("  events:\n"
                             "    - {at: 200ms, disk: n5, fault: full}\n"
                             "    - {at: 300ms, change: {batch_size: 20}}\n"));
  EXPECT_EQ(never.end, End::kFinished) << never.why;
  EXPECT_EQ(never.writes_failed, 1);
  for (const NodeScore& node : never.nodes) {
    EXPECT_EQ(node.plan_version, node.name == "n5" ? 1 : 2) << node.name;
  }
  const Result later = RunTwice(
      SmallScenario("  events:\n"
                    "    - {at: 200ms, disk: n5, fault: full, for: 300ms}\n"
                    "    - {at: 300ms, change: {batch_size: 20}}\n"));
  EXPECT_EQ(later.writes_failed, 1);
  for (const NodeScore& node : later.nodes) {
    EXPECT_EQ(node.plan_version, 2) << node.name;
  }
}

TEST(DiskFault, ALostDirectoryIsANewNode) {
  const Result result = RunTwice(TwoCrashes("lost"));
  EXPECT_EQ(result.states_lost, 2);
}

}  // namespace
}  // namespace dfl::sim

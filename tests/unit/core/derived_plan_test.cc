#include "daemon/core/plan/derived_plan.h"

#include <string>
#include <variant>

#include "daemon/core/plan/plan_topology.h"
#include "daemon/core/plan/plan_warnings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::core {
namespace {

RunPlan RandomPlan() {
  RunPlan plan;
  plan.seed = 7;
  for (const char* name : {"anna", "bert", "carl", "dora", "emil", "fritz"}) {
    plan.members.push_back({.node = NodeId(name)});
  }
  plan.topology.kind = "random-regular";
  plan.topology.degree = 3;
  return plan;
}

TEST(CheckPlan, KeepsTheGraphThatItsSeedMeans) {
  const auto checked = CheckPlan(RandomPlan());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->algorithm->name, "pame");
  const auto graph = PlanGraph(RandomPlan());
  EXPECT_EQ(std::get<Graph>(*checked->graph).Edges(),
            std::get<Graph>(*graph).Edges());
}

TEST(CheckPlan, RefusesWhatValidatePlanRefuses) {
  RunPlan plan = RandomPlan();
  plan.batch_size = 0;
  EXPECT_EQ(CheckPlan(plan).status(), ValidatePlan(plan));
}

TEST(CheckPlan, HasTheWarningsOfItsPlan) {
  RunPlan plan = RandomPlan();
  plan.topology.kind = "ring";
  const auto checked = CheckPlan(plan);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_FALSE(PlanWarnings(*checked).empty());
  EXPECT_EQ(PlanWarnings(*checked), PlanWarnings(plan));
}

TEST(Derive, GivesEachMemberItsPart) {
  const auto checked = CheckPlan(RandomPlan());
  ASSERT_TRUE(checked.ok()) << checked.status();
  const auto all = DeriveForAll(*checked);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 6u);
  for (const DerivedPlan& derived : *all) {
    EXPECT_EQ(&derived.plan(), checked->plan.get());
    const auto one = Derive(*checked, derived.node.self);
    const auto alone = DeriveNodePlan(RandomPlan(), derived.node.self);
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(one->node.place, derived.node.place);
    EXPECT_TRUE(SameNeighbours(one->node, derived.node));
    EXPECT_TRUE(SameNeighbours(*alone, derived.node));
  }
}

TEST(Derive, AStrangerIsNotFound) {
  const auto derived = CheckAndDerive(RandomPlan(), NodeId("eve"));
  EXPECT_EQ(derived.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(derived.status().message()),
              testing::HasSubstr("eve"));
}

}  // namespace
}  // namespace dfl::core

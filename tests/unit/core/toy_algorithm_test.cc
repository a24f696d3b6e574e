// What an algorithm gets for a class, an entry and a line in a catalogue.
#include "tests/support/toy_algorithm.h"

#include <string>
#include <vector>

#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/plan_warnings.h"
#include "daemon/core/plan/run_plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/four_nodes.h"

namespace dfl::core {
namespace {

using testing::HasSubstr;

RunPlan ToyPlan() {
  RunPlan plan;
  plan.algorithm.name = "toy";
  plan.algorithm.knobs["eta"] = 0.1;
  for (const char* name : {"anna", "bert", "carl"}) {
    plan.members.push_back(MemberSpec{.node = NodeId(name)});
  }
  plan.nodes[NodeId("bert")].knobs["eta"] = 0.3;
  return plan;
}

TEST(ToyAlgorithm, IsKnownToItsOwnCatalogueOnly) {
  EXPECT_THAT(std::string(ValidatePlan(ToyPlan()).message()),
              HasSubstr("there is no algorithm \"toy\""));
  const Catalogue catalogue = WithToy();
  EXPECT_TRUE(ValidatePlan(ToyPlan(), catalogue).ok());
  EXPECT_EQ(catalogue.entries().size(),
            BuiltInCatalogue().entries().size() + 1);
  EXPECT_THAT(std::string(catalogue.Find("tyo").status().message()),
              HasSubstr("did you mean \"toy\"?"));
}

TEST(ToyAlgorithm, ItsPlansAreCheckedByItsEntry) {
  const Catalogue catalogue = WithToy();
  RunPlan plan = ToyPlan();
  plan.algorithm.knobs["eat"] = 0.1;
  EXPECT_THAT(std::string(ValidatePlan(plan, catalogue).message()),
              HasSubstr("eat: unknown knob; did you mean \"eta\"?"));
  plan = ToyPlan();
  plan.topology.kind = "explicit";
  plan.topology.directed = true;
  const NodeId anna("anna");
  const NodeId bert("bert");
  const NodeId carl("carl");
  plan.topology.edges = {{anna, bert}, {bert, carl}, {carl, anna}};
  EXPECT_THAT(std::string(ValidatePlan(plan, catalogue).message()),
              HasSubstr("topology.directed: on, but toy"));
  EXPECT_THAT(PlanWarnings(ToyPlan(), catalogue),
              testing::Contains("members: 3 of them play with a toy"));
}

TEST(ToyAlgorithm, NodePlansCarryItsEntryAndItsFacts) {
  const Catalogue catalogue = WithToy();
  const auto plans = DeriveNodePlans(ToyPlan(), 0, catalogue);
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (const NodePlan& plan : *plans) {
    EXPECT_EQ(plan.algorithm, *catalogue.Find("toy"));
    EXPECT_EQ(FactsOf<ToyFacts>(plan).largest_eta, 0.3);
  }
}

TEST(ToyAlgorithm, RunsInANetwork) {
  const AlgorithmInfo info = ToyInfo();
  FourNodes network(info);
  const std::vector<float> start = network.parameters(0);
  network.RunToStep(60);
  for (size_t i = 0; i < FourNodes::kNodes; ++i) {
    EXPECT_EQ(network.algorithm(i).step(), 60);
    EXPECT_EQ(network.algorithm(i).ExportState().algorithm, "toy");
    EXPECT_NE(network.parameters(i), start);
    for (size_t l = 0; l < start.size(); ++l) {  // they stay together
      EXPECT_NEAR(network.parameters(i)[l], network.parameters(0)[l], 0.1);
    }
  }
}

}  // namespace
}  // namespace dfl::core

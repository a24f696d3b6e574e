// An algorithm that is in none of the program's lists: a class, an entry, and one
// line that adds the entry to a catalogue. docs/architecture.md goes through it.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/core/rounds/push_rounds.h"
#include "daemon/core/vector/flat_vector.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/core/four_nodes.h"

namespace dfl::core {
namespace {

using testing::HasSubstr;

// ---- the algorithm ----

// What a node of the toy wants to know of the whole network.
struct ToyFacts : AlgorithmFacts {
  double largest_eta = 0;
};

// Mixes by W and steps, no node with a longer step than twice its own.
class Toy : public PushRounds {
 public:
  explicit Toy(AlgorithmContext context) : PushRounds(std::move(context)) {}
  bool parameters_settled() const override { return true; }

 private:
  void Mix(std::vector<PushBarrier::Arrival> arrivals) override {
    MixArrivals(arrivals, vectors().parameters, vectors().buffers);
    AddScaled(static_cast<float>(-StepSize()), vectors().gradient,
              vectors().parameters);
  }
  double StepSize() const override {
    const double eta = plan().knobs.Number("eta");
    return std::min(2 * eta, FactsOf<ToyFacts>(plan()).largest_eta);
  }
};

// ---- catalogue entry ----

AlgorithmInfo ToyInfo() {
  return {
      .name = "toy",
      .summary = "Mixes and steps",
      .source = "this test",
      .create = Create<Toy>,
      .derive =
          [](const Network& network) -> std::shared_ptr<const AlgorithmFacts> {
        auto facts = std::make_shared<ToyFacts>();
        for (const double eta : network.Numbers("eta")) {
          facts->largest_eta = std::max(facts->largest_eta, eta);
        }
        return facts;
      },
      .warnings =
          [](const Network& network, const AnyGraph& /*window*/) {
            return std::vector<std::string>{
                absl::StrCat("members: ", network.members.size(),
                             " of them play with a toy")};
          },
      .exchange = Exchange::kPush,
      .lock_step = true,
      .edge = PushCost(),
      .cost = "One gradient a round; to each neighbour 4 n bytes.",
      .knobs = {PositiveKnob("eta", 0.05, "Step size."), MaxLagKnob()}};
}

Catalogue WithToy() {
  Catalogue catalogue = BuiltInCatalogue();
  catalogue.Add(ToyInfo());  // the one line
  return catalogue;
}

// ---- what it gets for that ----

RunPlan ToyPlan() {
  RunPlan plan;
  plan.algorithm.name = "toy";
  plan.algorithm.knobs["eta"] = 0.1;
  for (const char* name : {"anna", "bert", "carl"}) {
    plan.members.push_back(MemberSpec{NodeId(name), 0});
  }
  plan.nodes[NodeId("bert")].knobs["eta"] = 0.3;
  return plan;
}

TEST(ToyAlgorithm, IsKnownToItsOwnCatalogueOnly) {
  EXPECT_THAT(std::string(ValidatePlan(ToyPlan()).message()),
              HasSubstr("there is no algorithm \"toy\""));
  const Catalogue catalogue = WithToy();
  EXPECT_TRUE(ValidatePlan(ToyPlan(), catalogue).ok());
  EXPECT_EQ(catalogue.entries().size(), AlgorithmCatalogue().size() + 1);
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

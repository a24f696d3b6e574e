#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

void PlayEpidemicRound(const Case& golden, const json& step, int64_t k,
                       const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  for (const auto& node : nodes) {
    for (size_t j = 0; j < nodes.size(); ++j) {
      std::vector<int64_t>& places =
          node->decisions.together["receivers of " +
                                   NodeName(static_cast<int64_t>(j)).name()];
      places.clear();
      // Places among the members without the sender.
      for (const json& to : step.at("sends").at(j)) {
        const auto place = to.get<int64_t>();
        places.push_back(place < static_cast<int64_t>(j) ? place : place - 1);
      }
    }
  }
  std::vector<Pushed> pushes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->Handle(core::StepBegins{});
    TakePush(*nodes[i], static_cast<int64_t>(i), k, pushes);
    EXPECT_EQ(nodes[i]->decisions.wrong_counts, 0);
  }
  ASSERT_EQ(pushes.size(), nodes.size());
  for (const Pushed& push : pushes) {
    EXPECT_EQ(push.to, Named(step.at("sends").at(push.from)));
    for (const NodeId& to : push.to) {
      nodes[NodeIndex(to)]->Handle(
          core::PushArrived{NodeName(push.from), WholeModel(push.model, k)});
    }
  }
  const State* want = golden.StateAfter(k);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    ExpectNobodyMissed(node);
    core::ComputeGradient compute;
    ASSERT_TRUE(node.Take(&compute)) << "round " << k << " node " << i;
    const std::vector<float> average = node.parameters;
    node.Gradient(ReadBatch(step.at("batch").at(i)));
    core::StepDone done;
    ASSERT_TRUE(node.Take(&done));
    if (want == nullptr) continue;
    ExpectRow(*want, "avg", i, average);
    ExpectRow(*want, "x", i, node.parameters);
  }
}

}  // namespace

void RunEpidemic(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    core::NodePlan plan =
        MakePlan("epidemic", static_cast<int64_t>(i), KnobsOf(golden));
    for (size_t j = 0; j < problems.size(); ++j) {
      if (j != i) plan.neighbours.push_back({NodeName(j), 0});
    }
    nodes.push_back(std::make_unique<GoldenNode>(
        "epidemic", std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
    for (size_t j = 0; j < problems.size(); ++j) {
      nodes[i]->Handle(core::PeerUp{NodeName(j)});
    }
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PlayEpidemicRound(golden, step, k, nodes);
    if (testing::Test::HasFatalFailure()) return;
    ++k;
  }
}

}  // namespace dfl::golden

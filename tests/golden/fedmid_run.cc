#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/core/algorithms/hubs.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// The node that all edges have in common; of one edge the first.
int64_t HubOf(const json& edges) {
  for (const json& hub : edges.at(0)) {
    const bool common =
        std::all_of(edges.begin(), edges.end(), [&](const json& edge) {
          return edge.at(0) == hub || edge.at(1) == hub;
        });
    if (common) return hub.get<int64_t>();
  }
  ADD_FAILURE() << "not a star: " << edges;
  return 0;
}

// The spokes train and push, then the hub trains, mixes and pushes back.
void PlayFedmidRound(const Case& golden, const json& step, int64_t k,
                     const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  const int64_t hub = HubOf(golden.at("graph").at("edges"));
  const State* want = golden.StateAfter(k);
  std::vector<Pushed> pushes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    node.Handle(core::StepBegins{});
    for (const json& batch : step.at("local").at(i)) {
      core::ComputeGradient compute;
      ASSERT_TRUE(node.Take(&compute)) << "round " << k << " node " << i;
      node.Gradient(ReadBatch(batch));
    }
    if (want != nullptr) ExpectRow(*want, "z", i, node.parameters);
    TakePush(node, static_cast<int64_t>(i), k, pushes);
  }
  ASSERT_EQ(pushes.size(), nodes.size() - 1);
  for (const Pushed& push : pushes) {
    ASSERT_EQ(push.to, std::vector<NodeId>{NodeName(hub)});
    nodes[hub]->Handle(
        core::PushArrived{NodeName(push.from), WholeModel(push.model, k)});
  }
  core::Push back;
  ASSERT_TRUE(nodes[hub]->Take(&back)) << "round " << k;
  EXPECT_EQ(back.peers.size(), nodes.size() - 1);
  const std::vector<float> w(back.values.begin(), back.values.end());
  for (const NodeId& to : back.peers) {
    nodes[NodeIndex(to)]->Handle(
        core::PushArrived{NodeName(hub), WholeModel(w, back.round)});
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    core::StepDone done;
    ASSERT_TRUE(nodes[i]->Take(&done)) << "round " << k << " node " << i;
    if (want != nullptr) ExpectRow(*want, "x", i, nodes[i]->parameters);
  }
}

}  // namespace

void RunFedmid(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan = MakePlan("fedmid", self, KnobsOf(golden));
    plan.member_count = golden.at("m").get<int64_t>();
    const json& edges = golden.at("graph").at("edges");
    plan.facts = std::make_shared<core::HubFacts>(
        std::vector<NodeId>{NodeName(HubOf(edges))});
    for (const json& edge : edges) {
      if (edge.at(0) == self) plan.neighbours.push_back({NodeName(edge[1]), 0});
      if (edge.at(1) == self) plan.neighbours.push_back({NodeName(edge[0]), 0});
    }
    const std::vector<core::Neighbour> neighbours = plan.neighbours;
    nodes.push_back(std::make_unique<GoldenNode>(
        "fedmid", std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
    for (const core::Neighbour& peer : neighbours) {
      nodes[i]->Handle(core::PeerUp{peer.node});
    }
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PlayFedmidRound(golden, step, k, nodes);
    if (testing::Test::HasFatalFailure()) return;
    ++k;
  }
}

}  // namespace dfl::golden

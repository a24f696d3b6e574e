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

// The spokes train and push; the hub trains, mixes and pushes back.
void PlayRound(GoldenNetwork& net, const json& step, int64_t k) {
  const int64_t hub = HubOf(net.golden().at("graph").at("edges"));
  const State* want = net.golden().StateAfter(k);
  for (size_t i = 0; i < net.size(); ++i) {
    for (auto& batch : BatchesOf(step, i)) net.batches(i).push_back(batch);
  }
  net.NewRoundOfAll();
  net.Run(GoldenNetwork::kBeforeMessages);
  ASSERT_EQ(net.pushes().size(), net.size() - 1);
  net.ExpectPushesOf(k);
  for (const auto& push : net.pushes()) {
    EXPECT_EQ(push.to, std::vector<NodeId>{NodeName(hub)});
  }
  for (size_t i = 0; want != nullptr && i < net.size(); ++i) {
    ExpectRow(*want, "z", i, net.parameters(i));
  }
  net.RunAll();
  ASSERT_EQ(net.pushes().size(), net.size()) << "round " << k;
  EXPECT_EQ(net.pushes().back().from, static_cast<size_t>(hub));
  EXPECT_EQ(net.pushes().back().to.size(), net.size() - 1);
  net.ExpectAllDone();
  for (size_t i = 0; want != nullptr && i < net.size(); ++i) {
    ExpectRow(*want, "x", i, net.parameters(i));
  }
}

}  // namespace

void RunFedmid(const Case& golden) {
  GoldenNetwork net(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < net.size(); ++i) {
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
    net.AddNode(i, std::move(plan), golden.at("x0").at(i));
    net.LinkUp(i);
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PlayRound(net, step, k++);
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace dfl::golden

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

using Nodes = std::vector<std::unique_ptr<GoldenNode>>;

// Everyone trains and pushes to the leader what it began the round with.
void PlayTraining(const Case& golden, const json& step, int64_t k,
                  const Nodes& nodes, std::vector<Pushed>& pushes) {
  const State* want = golden.StateAfter(k);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    node.decisions.together["leader"] = {step.at("leader").get<int64_t>()};
    node.Handle(core::StepBegins{});
    EXPECT_EQ(node.decisions.wrong_counts, 0) << "node " << i;
    TakePush(node, static_cast<int64_t>(i), k, pushes);
    const json batches = step.contains("local")
                             ? step.at("local").at(i)
                             : json::array({step.at("batch").at(i)});
    for (const json& batch : batches) {
      core::ComputeGradient compute;
      ASSERT_TRUE(node.Take(&compute)) << "round " << k << " node " << i;
      node.Gradient(ReadBatch(batch));
    }
    if (want != nullptr) ExpectRow(*want, "x_local", i, node.parameters);
    core::StepDone early;
    EXPECT_FALSE(node.Take(&early)) << "round " << k << " node " << i;
  }
}

// The leader mixes and pushes back, or nobody hears of it.
void PlayMixing(const json& step, int64_t k, const Nodes& nodes,
                const std::vector<Pushed>& pushes) {
  const auto leader = step.at("leader").get<int64_t>();
  ASSERT_EQ(pushes.size(), nodes.size() - 1);
  for (const Pushed& push : pushes) {
    ASSERT_EQ(push.to, std::vector<NodeId>{NodeName(leader)});
    nodes[leader]->Handle(
        core::PushArrived{NodeName(push.from), WholeModel(push.model, k)});
  }
  core::Push back;
  ASSERT_TRUE(nodes[leader]->Take(&back)) << "round " << k;
  EXPECT_EQ(back.round, k);
  EXPECT_EQ(back.peers.size(), nodes.size() - 1);
  const std::vector<float> mean = nodes[leader]->TakePushed();
  const bool lost = step.value("lost", false);
  for (const NodeId& to : back.peers) {
    GoldenNode& node = *nodes[NodeIndex(to)];
    core::WakeAfter deadline;
    ASSERT_TRUE(node.Take(&deadline)) << "round " << k << " " << to.name();
    if (lost) {
      node.Handle(core::TimerFired{deadline.timer});
    } else {
      node.Handle(core::PushArrived{NodeName(leader), WholeModel(mean, k)});
    }
    core::Missed missed;
    EXPECT_EQ(node.Take(&missed), lost) << "round " << k << " " << to.name();
  }
}

}  // namespace

void RunSwarm(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  Nodes nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan = MakePlan(golden.algorithm(), self, KnobsOf(golden));
    SetRow(golden.at("W").at(i), self, &plan);
    const int64_t batch = golden.at("params").value("batch_size", int64_t{1});
    nodes.push_back(std::make_unique<GoldenNode>(
        golden.algorithm(), std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i],
        (problems[i]->rows() + batch - 1) / batch, 0));
    for (size_t j = 0; j < problems.size(); ++j) {
      if (j != i) {
        nodes[i]->Handle(core::PeerUp{NodeName(static_cast<int64_t>(j))});
      }
    }
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    std::vector<Pushed> pushes;
    PlayTraining(golden, step, k, nodes, pushes);
    if (testing::Test::HasFatalFailure()) return;
    PlayMixing(step, k, nodes, pushes);
    if (testing::Test::HasFatalFailure()) return;
    const State* want = golden.StateAfter(k);
    for (size_t i = 0; i < nodes.size(); ++i) {
      core::StepDone done;
      ASSERT_TRUE(nodes[i]->Take(&done)) << "round " << k << " node " << i;
      if (want != nullptr) ExpectRow(*want, "x", i, nodes[i]->parameters);
    }
    ++k;
  }
}

}  // namespace dfl::golden

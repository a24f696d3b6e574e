#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/algorithms/async_dsgd.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// A node and its gradient under way.
struct ClockedNode {
  std::unique_ptr<GoldenNode> node;
  std::vector<float> model;  // the gradient is at this one
  int64_t from_round = -1;   // of that round; -1: none is under way
};

// Whether a round ends by the clock. Without one it waits for everybody.
bool HasClock(const Case& golden) {
  for (const core::KnobSpec& knob :
       (*core::FindAlgorithm(golden.algorithm()))->knobs) {
    if (knob.name == "gamma_max") return true;
  }
  return false;
}

std::vector<ClockedNode> MakeClockedNodes(
    const Case& golden,
    const std::vector<std::unique_ptr<simports::Problem>>& problems) {
  const std::string algorithm = golden.algorithm();
  const json& params = golden.at("params");
  std::vector<ClockedNode> nodes(problems.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    core::KnobValues knobs = {{"eta", params.at("eta").get<double>()},
                              {"xi", params.at("xi").get<double>()}};
    if (HasClock(golden)) {
      knobs["measure_q"] = false;
      knobs["q"] = std::clamp(params.at("q").at(i).get<double>(), 0.0, 0.99);
    }
    core::NodePlan plan = MakePlan(algorithm, static_cast<int64_t>(i), knobs);
    auto facts = std::make_shared<core::StragglerFacts>();
    for (const json& q : params.at("q")) {
      facts->largest_q =
          std::max(facts->largest_q, std::clamp(q.get<double>(), 0.0, 0.99));
    }
    if (algorithm != "sync-dsgd") plan.facts = std::move(facts);
    for (size_t j = 0; j < nodes.size(); ++j) {
      if (j != i) plan.neighbours.push_back({NodeName(j), 0});
    }
    nodes[i].node = std::make_unique<GoldenNode>(
        algorithm, std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0);
    const double step_size = params.at("eta_i").at(i);
    EXPECT_NEAR(nodes[i].node->algorithm().Gauges().at("step_size"), step_size,
                1e-6 * step_size);
  }
  return nodes;
}

// The links of this round, and the computing until the barrier.
void PlayComputing(const Case& golden, const json& step, int64_t k, size_t i,
                   ClockedNode& clocked, std::vector<Pushed>& pushes,
                   std::vector<core::Push>& said) {
  GoldenNode& node = *clocked.node;
  std::set<int64_t> linked;
  for (const json& edge : step.at("edges")) {
    for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 0}}) {
      if (edge.at(a) == i) linked.insert(edge.at(b).get<int64_t>());
    }
  }
  for (int64_t j = 0; j < golden.at("m").get<int64_t>(); ++j) {
    if (linked.count(j) > 0) {
      node.Handle(core::PeerUp{NodeName(j)});
    } else {
      node.Handle(core::PeerDown{NodeName(j)});
    }
  }
  node.Handle(core::StepBegins{});
  core::WakeAfter clock;
  const bool clocks = node.Take(&clock);
  EXPECT_EQ(clocks, HasClock(golden));
  // What came too late is discarded and begun anew, or computed on.
  if (clocked.from_round >= 0 && golden.at("algorithm") == "barrier-dsgd") {
    node.SpoiltGradient();
    clocked.from_round = -1;
  }
  core::ComputeGradient compute;
  ASSERT_EQ(node.Take(&compute), clocked.from_round < 0);
  if (clocked.from_round < 0) {
    clocked.model = node.parameters;
    clocked.from_round = k;
  }
  const json& script = step.at("nodes").at(i);
  EXPECT_EQ(clocked.from_round, script.at("from_round").get<int64_t>());
  EXPECT_TRUE(node.algorithm().parameters_settled());
  if (script.at("ready").get<bool>()) {
    node.GradientAt(clocked.model, ReadBatch(script.at("batch")));
    clocked.from_round = -1;
  }
  if (clocks) node.Handle(core::TimerFired{clock.timer});
  const State* want = golden.StateAfter(k);
  if (want != nullptr) ExpectRow(*want, "x_half", i, node.parameters);
  core::Push push;
  ASSERT_EQ(node.Take(&push), !linked.empty());
  if (linked.empty()) return;
  EXPECT_EQ(push.peers.size(), linked.size());
  pushes.push_back({static_cast<int64_t>(i), push.peers, node.TakePushed()});
  said.push_back(std::move(push));
}

// The round's W, which the nodes find by themselves.
void CheckMetropolis(const Case& golden, const json& step) {
  if (!step.contains("W")) return;
  const core::Graph graph =
      MakeGraph(golden.at("m").get<int64_t>(), step.at("edges"));
  const auto w = core::BuildMixing("metropolis", graph);
  ASSERT_TRUE(w.ok()) << w.status();
  for (size_t i = 0; i < w->size(); ++i) {
    for (size_t j = 0; j < w->size(); ++j) {
      EXPECT_NEAR((*w)[i][j], step.at("W").at(i).at(j).get<double>(), 1e-9);
    }
  }
}

}  // namespace

void RunClocked(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  std::vector<ClockedNode> nodes = MakeClockedNodes(golden, problems);
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    CheckMetropolis(golden, step);
    std::vector<Pushed> pushes;
    std::vector<core::Push> said;
    for (size_t i = 0; i < nodes.size(); ++i) {
      PlayComputing(golden, step, k, i, nodes[i], pushes, said);
      if (testing::Test::HasFatalFailure()) return;
    }
    for (size_t q = 0; q < pushes.size(); ++q) {
      for (const NodeId& to : pushes[q].to) {
        core::RemoteModel model = WholeModel(pushes[q].model, k);
        model.scalars = said[q].scalars;
        nodes[NodeIndex(to)].node->Handle(
            core::PushArrived{NodeName(pushes[q].from), std::move(model)});
      }
    }
    const State* want = golden.StateAfter(k);
    for (size_t i = 0; i < nodes.size(); ++i) {
      GoldenNode& node = *nodes[i].node;
      ExpectNobodyMissed(node);
      core::StepDone done;
      ASSERT_TRUE(node.Take(&done)) << "round " << k << " node " << i;
      if (want != nullptr) ExpectRow(*want, "x", i, node.parameters);
    }
    ++k;
  }
}

}  // namespace dfl::golden

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// A run of synchronous rounds under way.
struct RoundRun {
  const Case& golden;
  std::string algorithm;
  std::vector<std::unique_ptr<simports::Problem>> problems;
  core::KnobValues knobs;
  std::map<int64_t, std::unique_ptr<GoldenNode>> nodes;

  // rows_i members / sum of rows.
  double SampleWeight(int64_t node, const std::vector<int64_t>& members) const {
    double total = 0;
    for (const int64_t j : members) {
      total += static_cast<double>(problems[j]->rows());
    }
    return static_cast<double>(problems[node]->rows()) *
           static_cast<double>(members.size()) / total;
  }

  const json& Weights(const json& step) const {
    if (!step.contains("W")) return golden.at("W");
    return golden.at("Ws").at(step.at("W").get<size_t>());
  }

  std::vector<int64_t> Members(const json& step) const {
    if (step.contains("members")) {
      return step.at("members").get<std::vector<int64_t>>();
    }
    std::vector<int64_t> all(problems.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
    return all;
  }

  void Join(int64_t node, const json& start, int64_t step) {
    const json& params = golden.at("params");
    const int64_t batch = params.value("batch_size", int64_t{1});
    const int64_t passes = (problems[node]->rows() + batch - 1) / batch;
    ASSERT_FALSE(start.is_null()) << "node " << node;
    nodes[node] = std::make_unique<GoldenNode>(
        algorithm, MakePlan(algorithm, node, knobs),
        start.get<std::vector<float>>(), *problems[node], passes, step);
    // Every link is up.
    for (size_t j = 0; j < problems.size(); ++j) {
      nodes[node]->Handle(core::PeerUp{NodeName(static_cast<int64_t>(j))});
    }
  }
};

// One round: plan, start, gradients, pushes.
void PlayRound(RoundRun& run, const json& step, int64_t k) {
  const std::vector<int64_t> members = run.Members(step);
  const json& weights = run.Weights(step);
  for (const int64_t i : members) {
    ASSERT_EQ(run.nodes.count(i), 1U) << "node " << i;
    core::KnobValues knobs = run.knobs;
    // A constant step may be another in each round.
    const bool told = step.contains("eta");
    if (told && knobs.count("delta") == 0) {
      knobs["eta"] = step.at("eta").get<double>();
    }
    core::NodePlan plan = MakePlan(run.algorithm, i, knobs);
    SetRow(weights.at(i), i, &plan);
    plan.sample_weight = run.SampleWeight(i, members);
    run.nodes[i]->Handle(core::PlanChanged{std::move(plan)});
    if (told) {
      const bool weighted = run.golden.at("params").at("sample_weighting");
      const double eta = step.at("eta").get<double>() *
                         (weighted ? run.SampleWeight(i, members) : 1);
      EXPECT_NEAR(run.nodes[i]->algorithm().Gauges().at("step_size"), eta,
                  1e-6 * eta)
          << "round " << k << " node " << i;
    }
  }
  // Models are pushed before training or after it.
  std::vector<Pushed> pushes;
  for (const int64_t i : members) {
    run.nodes[i]->Handle(core::StepBegins{});
    TakePush(*run.nodes[i], i, k, pushes);
  }
  // A step with a radius takes two gradients on one batch.
  const int gradients = run.knobs.count("rho") > 0 ? 2 : 1;
  const State* want = run.golden.StateAfter(k);
  for (const int64_t i : members) {
    GoldenNode& node = *run.nodes[i];
    const json batches = step.contains("local")
                             ? step.at("local").at(i)
                             : json::array({step.at("batch").at(i)});
    for (const json& batch : batches) {
      for (int g = 0; g < gradients; ++g) {
        core::ComputeGradient compute;
        ASSERT_TRUE(node.Take(&compute)) << "round " << k << " node " << i;
        EXPECT_EQ(compute.same_batch, g > 0);
        node.Gradient(ReadBatch(batch));
      }
    }
    core::ComputeGradient surplus;
    EXPECT_FALSE(node.Take(&surplus));
    // A node that is alone has mixed at once.
    const bool alone = weights.at(i).at(i) == 1;
    for (const char* trained : {"x_local", "z"}) {
      if (want == nullptr) continue;
      if (alone && want->contains(trained)) {
        EXPECT_TRUE(want->at(trained).at(i).is_array()) << trained;
      } else {
        ExpectRow(*want, trained, i, node.parameters);
      }
    }
    TakePush(node, i, k, pushes);
  }
  for (const Pushed& push : pushes) {
    for (const NodeId& to : push.to) {
      run.nodes[NodeIndex(to)]->Handle(
          core::PushArrived{NodeName(push.from), WholeModel(push.model, k)});
    }
  }
  for (const int64_t i : members) {
    ExpectNobodyMissed(*run.nodes[i]);
    core::StepDone done;
    ASSERT_TRUE(run.nodes[i]->Take(&done)) << "round " << k << " node " << i;
    if (want != nullptr) ExpectRow(*want, "x", i, run.nodes[i]->parameters);
  }
  // Absent nodes have no states.
  for (size_t i = 0; want != nullptr && i < run.problems.size(); ++i) {
    const auto self = static_cast<int64_t>(i);
    if (std::count(members.begin(), members.end(), self) > 0) continue;
    for (const char* field : {"x", "x_local", "z"}) {
      if (!want->contains(field)) continue;
      EXPECT_TRUE(want->at(field).at(i).is_null()) << field << " of node " << i;
    }
  }
}

// The matrices are those of the rule, where one is told.
void CheckRule(const Case& golden) {
  const json& params = golden.at("params");
  const std::string rule = params.value("rule", "explicit");
  if (rule == "explicit") return;
  for (size_t q = 0; q < golden.at("Ws").size(); ++q) {
    const json& want = golden.at("Ws").at(q);
    // Of the nodes that exist.
    std::map<int64_t, int64_t> places;
    for (int64_t i = 0; i < golden.at("m").get<int64_t>(); ++i) {
      if (want.at(i).at(i) != 0) {
        places.emplace(i, static_cast<int64_t>(places.size()));
      }
    }
    core::Graph graph(static_cast<int64_t>(places.size()));
    for (const json& edge : golden.at("edge_sets").at(q)) {
      graph.AddEdge(places.at(edge.at(0)), places.at(edge.at(1)));
    }
    const auto built = core::BuildMixing(rule, graph);
    ASSERT_TRUE(built.ok()) << built.status();
    for (const auto& [i, a] : places) {
      for (const auto& [j, b] : places) {
        EXPECT_NEAR((*built)[a][b], want.at(i).at(j).get<double>(), 1e-9)
            << "Ws[" << q << "][" << i << "][" << j << "]";
      }
    }
  }
}

}  // namespace

void RunRounds(const Case& golden) {
  RoundRun run{golden,
               golden.algorithm(),
               MakeProblems(golden.at("problem")),
               KnobsOf(golden),
               {}};
  CheckProblems(golden, run.problems);
  if (golden.contains("Ws")) CheckRule(golden);
  if (testing::Test::HasFatalFailure()) return;
  for (size_t i = 0; i < run.problems.size(); ++i) {
    const json& x0 = golden.at("x0").at(i);
    if (!x0.is_null()) run.Join(static_cast<int64_t>(i), x0, 0);
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    if (step.contains("join")) {
      for (const json& joiner : step.at("join")) {
        run.Join(joiner.at("node").get<int64_t>(), joiner.at("x"), k);
      }
    }
    PlayRound(run, step, k);
    if (testing::Test::HasFatalFailure()) return;
    ++k;
  }
}

}  // namespace dfl::golden

#include "tests/golden/mass_run.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/algorithm/network.h"
#include "daemon/core/graph/graph.h"
#include "gtest/gtest.h"
#include "tests/golden/drivers.h"
#include "tests/golden/mass_states.h"
#include "tests/golden/run_parts.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

// The neighbours of `self`: by W, or by A and B.
void SetNeighbours(const Case& golden, int64_t self, core::NodePlan* plan) {
  const auto add = [self](const json& matrix, bool column,
                          std::vector<core::Neighbour>* to, double* own) {
    const auto m = static_cast<int64_t>(matrix.size());
    for (int64_t j = 0; j < m; ++j) {
      const double weight = column ? matrix[j][self].get<double>()
                                   : matrix[self][j].get<double>();
      if (j == self) {
        *own = weight;
      } else if (weight != 0) {
        to->push_back({NodeName(j), weight});
      }
    }
  };
  if (golden.contains("A") && !golden.at("A").is_null()) {
    add(golden.at("A"), false, &plan->in_neighbours, &plan->receiver_weight);
    add(golden.at("B"), true, &plan->out_neighbours, &plan->sender_weight);
  } else if (golden.contains("B") && !golden.at("B").is_null()) {
    add(golden.at("B"), false, &plan->in_neighbours, &plan->receiver_weight);
    add(golden.at("B"), true, &plan->out_neighbours, &plan->sender_weight);
  } else {
    add(golden.at("W"), false, &plan->neighbours, &plan->self_weight);
  }
}

// y and g after the gradients that are computed before step 0, when nothing has
// arrived yet: y is what the node holds and what it gives away.
void CheckStart(MassRun& run) {
  const State* want = run.golden().StateAfter(-1);
  const json& computes = run.golden().at("init").at("v");
  for (size_t i = 0; i < run.size(); ++i) {
    const bool has_gradient = computes.at(i).get<bool>();
    ASSERT_EQ(run.Count<core::ComputeGradient>(i), has_gradient ? 1 : 0)
        << "node " << i;
    if (want == nullptr) continue;
    FlatVector y = run.algorithm(i).Auxiliary("y");
    run.rounds(i).AddUnsettled(absl::MakeSpan(y));
    ExpectRow(*want, "y", i, y);
    ExpectRow(*want, "g", i, run.node(i).gradient);
  }
}

void PlayRound(MassRun& run, int64_t k) {
  for (size_t i = 0; i < run.size(); ++i) {
    run.before[i] = Before{run.parameters(i), {}, 0};
    run.given[i].reset();
    if (run.replicas(i) != nullptr) {
      run.before[i].replica = run.replicas(i)->replica();
    }
    const auto gauges = run.algorithm(i).Gauges();
    if (gauges.count("range") > 0) run.before[i].range = gauges.at("range");
  }
  run.NewRoundOfAll();
  if (k == 0 && run.golden().contains("init") &&
      run.golden().at("init").contains("v")) {
    run.Run(GoldenNetwork::kBeforeMessages);
    CheckStart(run);
    if (testing::Test::HasFatalFailure()) return;
  }
  run.RunAll();
  run.ExpectNobodyMissed();
  run.ExpectAllDone();
  for (size_t i = 0; i < run.size(); ++i) {
    // These algorithms have no such actions.
    EXPECT_EQ(run.Count<core::Ask>(i) + run.Count<core::CancelAsk>(i) +
                  run.Count<core::Answer>(i) + run.Count<core::Predict>(i),
              0)
        << "node " << i;
  }
}

// The decisions of one round.
void Script(MassRun& run, const json& step) {
  for (size_t i = 0; i < run.size(); ++i) {
    auto& happens = run.decisions(i).happens;
    const NodeId self = NodeName(static_cast<int64_t>(i));
    for (const auto& [mask, purpose] :
         {std::pair{"mask", "replica"}, {"mask_h", "h"}, {"mask_g", "g"}}) {
      if (!step.contains(mask)) continue;
      auto kept = step.at(mask).at(i).get<std::vector<int64_t>>();
      const json& first = run.golden().at("schedule").at(0).at(mask).at(0);
      if (kept.size() != first.size()) run.decisions(i).any_count = true;
      run.decisions(i).coordinates[purpose].push_back(std::move(kept));
    }
    if (step.contains("local")) {
      for (const json& batch : step.at("local").at(i)) {
        run.batches(i).push_back(ReadBatch(batch));
      }
    } else if (step.contains("batch")) {
      run.batches(i).push_back(ReadBatch(step.at("batch").at(i)));
    } else if (!step.contains("v_next")) {
      run.batches(i).push_back(ReadBatch(step.at("batch_next").at(i)));
    } else {
      const bool computes = step.at("v_next").at(i).get<bool>();
      happens[{"compute", self}].push_back(computes);
      if (computes) {
        run.batches(i).push_back(ReadBatch(step.at("batch_next").at(i)));
      }
      for (const json& arc : run.golden().at("graph").at("edges")) {
        if (arc[0].get<size_t>() != i) continue;
        const json& sent = step.at("vhat");
        happens[{"send", NodeName(arc[1].get<int64_t>())}].push_back(
            std::find(sent.begin(), sent.end(), arc) != sent.end());
      }
    }
  }
}

void ScriptStart(MassRun& run) {
  if (!run.golden().contains("init")) return;
  const json& init = run.golden().at("init");
  for (size_t i = 0; i < run.size(); ++i) {
    if (!init.contains("v")) {
      run.batches(i).push_back(ReadBatch(init.at("batch").at(i)));
      continue;
    }
    const bool computes = init.at("v").at(i).get<bool>();
    run.decisions(i).happens[{"compute", run.name(i)}].push_back(computes);
    if (computes) {
      run.batches(i).push_back(ReadBatch(init.at("batch").at(i)));
    }
  }
}

// What is told before round k: whether it mixes, and the nu that it moves by.
void CheckBefore(MassRun& run, const json& step, int64_t k) {
  const State* want = run.golden().StateAfter(k);
  for (size_t i = 0; i < run.size(); ++i) {
    const core::Algorithm& algorithm = run.algorithm(i);
    if (step.contains("mix")) {
      EXPECT_EQ(algorithm.NextExchange(k) == k, step.at("mix").get<bool>())
          << "round " << k;
    }
    if (want != nullptr && want->contains("nu")) {
      ExpectRow(*want, "nu", i, algorithm.Auxiliary("nu"));
    }
  }
}

// Of the graph that the nodes send over, as a plan has it.
core::Digraph ArcsOf(const Case& golden, int64_t nodes) {
  core::Digraph graph(nodes);
  for (int64_t from = 0; from < nodes; ++from) {
    core::NodePlan plan;
    SetNeighbours(golden, from, &plan);
    for (const core::Neighbour& neighbour : plan.out_neighbours) {
      for (int64_t to = 0; to < nodes; ++to) {
        if (NodeName(to) == neighbour.node) graph.AddArc(from, to);
      }
    }
  }
  return graph;
}

}  // namespace

void RunMass(const Case& golden) {
  MassRun run(golden);
  if (testing::Test::HasFatalFailure()) return;
  const std::string algorithm = golden.algorithm();
  const core::KnobValues knobs = MassKnobs(golden);
  core::Network network;
  network.graph = ArcsOf(golden, static_cast<int64_t>(run.size()));
  for (size_t i = 0; i < run.size(); ++i)
    network.members.push_back(run.name(i));
  for (size_t i = 0; i < run.size(); ++i) {
    core::NodePlan plan = MakePlan(algorithm, static_cast<int64_t>(i), knobs);
    SetNeighbours(golden, static_cast<int64_t>(i), &plan);
    plan.place = static_cast<int64_t>(i);
    network.knobs = plan.knobs;
    if (plan.algorithm->derive != nullptr) {
      plan.facts = plan.algorithm->derive(network);
    }
    run.AddNode(i, std::move(plan), golden.at("x0").at(i));
    run.LinkUp(i);
  }
  ScriptStart(run);
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    Script(run, step);
    CheckBefore(run, step, k);
    PlayRound(run, k);
    if (testing::Test::HasFatalFailure()) return;
    if (const State* want = golden.StateAfter(k)) CheckStates(run, *want);
    ++k;
  }
}

}  // namespace dfl::golden

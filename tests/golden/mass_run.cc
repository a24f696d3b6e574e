#include "tests/golden/mass_run.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithm/network.h"
#include "daemon/core/algorithms/catalogue.h"
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

// What a node's action leads to. The network loses nothing.
struct Carry {
  MassRun& run;
  size_t self;
  bool& done;

  GoldenNode& node() const { return *run.nodes[self]; }
  GoldenNode& peer(const NodeId& id) const { return *run.nodes[NodeIndex(id)]; }
  NodeId name() const { return NodeName(static_cast<int64_t>(self)); }

  void operator()(core::ComputeGradient) const {
    ASSERT_FALSE(run.batches[self].empty());
    const std::vector<int64_t> batch = std::move(run.batches[self].front());
    run.batches[self].pop_front();
    node().Gradient(batch);
  }
  void operator()(core::Push push) const {
    const std::vector<float> values = node().TakePushed();
    for (const NodeId& to : push.peers) {
      peer(to).Handle(
          core::PushArrived{name(), WholeModel(values, push.round)});
    }
  }
  void operator()(core::Give give) const {
    run.given[self] = Given{*give.mass, give.steps != nullptr, give.to};
    core::RemoteModel mass =
        WholeModel({give.mass->begin(), give.mass->end()}, give.round);
    mass.scalars = give.scalars;
    peer(give.to).Handle(core::MassArrived{
        name(), give.sequence, std::move(mass), give.steps != nullptr});
    node().Handle(
        core::Delivered{give.to, give.sequence,
                        run.rounds(NodeIndex(give.to)).MassTaken(name())});
  }
  void operator()(core::Skip skip) const {
    for (const NodeId& to : skip.peers) {
      peer(to).Handle(core::Skipped{name(), skip.round});
    }
  }
  void operator()(core::WakeAfter) const {}  // deadlines do not pass
  void operator()(core::StepDone) const { done = true; }
  void operator()(core::CancelTimer) const {}
  template <typename Other>
  void operator()(Other) const {
    FAIL() << "an action that these algorithms do not have";
  }
};

// y and g after the gradients that are computed before step 0, when nothing has
// arrived yet: y is what the node holds and what it gives away.
void PlayStart(MassRun& run) {
  const State* want = run.golden.StateAfter(-1);
  const json& computes = run.golden.at("init").at("v");
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    GoldenNode& node = *run.nodes[i];
    core::ComputeGradient compute;
    const bool has_gradient = computes.at(i).get<bool>();
    ASSERT_EQ(node.Take(&compute), has_gradient) << "node " << i;
    FlatVector g(node.parameters.size(), 0.0F);
    if (has_gradient) {
      node.Gradient(run.batches[i].front());
      run.batches[i].pop_front();
      g.assign(node.gradient().begin(), node.gradient().end());
    }
    if (want == nullptr) continue;
    FlatVector y = node.algorithm().Auxiliary("y");
    run.rounds(i).AddUnsettled(absl::MakeSpan(y));
    ExpectRow(*want, "y", i, y);
    ExpectRow(*want, "g", i, g);
  }
}

void PlayRound(MassRun& run, int64_t k) {
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    run.before[i] = Before{run.nodes[i]->parameters, {}, 0};
    run.given[i].reset();
    if (run.replicas(i) != nullptr) {
      run.before[i].replica = run.replicas(i)->replica();
    }
    const auto gauges = run.nodes[i]->algorithm().Gauges();
    if (gauges.count("range") > 0) run.before[i].range = gauges.at("range");
  }
  for (const auto& node : run.nodes) node->Handle(core::StepBegins{});
  if (k == 0 && run.golden.contains("init") &&
      run.golden.at("init").contains("v")) {
    PlayStart(run);
    if (testing::Test::HasFatalFailure()) return;
  }
  std::vector<char> done(run.nodes.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = 0; i < run.nodes.size(); ++i) {
      while (auto action = run.nodes[i]->TakeAny()) {
        moved = true;
        bool step_done = false;
        std::visit(Carry{run, i, step_done}, *std::move(action));
        if (testing::Test::HasFatalFailure()) return;
        if (step_done) done[i] = 1;
      }
    }
  }
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    EXPECT_TRUE(done[i]) << "node " << i;
    EXPECT_EQ(run.nodes[i]->decisions.wrong_counts, 0) << "node " << i;
    EXPECT_TRUE(run.batches[i].empty()) << "node " << i;
  }
}

// The decisions of one round.
void Script(MassRun& run, const json& step) {
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    auto& happens = run.nodes[i]->decisions.happens;
    const NodeId self = NodeName(static_cast<int64_t>(i));
    for (const auto& [mask, purpose] :
         {std::pair{"mask", "replica"}, {"mask_h", "h"}, {"mask_g", "g"}}) {
      if (!step.contains(mask)) continue;
      auto kept = step.at(mask).at(i).get<std::vector<int64_t>>();
      const json& first = run.golden.at("schedule").at(0).at(mask).at(0);
      if (kept.size() != first.size()) run.nodes[i]->decisions.any_count = true;
      run.nodes[i]->decisions.coordinates[purpose].push_back(std::move(kept));
    }
    if (step.contains("local")) {
      for (const json& batch : step.at("local").at(i)) {
        run.batches[i].push_back(ReadBatch(batch));
      }
    } else if (step.contains("batch")) {
      run.batches[i].push_back(ReadBatch(step.at("batch").at(i)));
    } else if (!step.contains("v_next")) {
      run.batches[i].push_back(ReadBatch(step.at("batch_next").at(i)));
    } else {
      const bool computes = step.at("v_next").at(i).get<bool>();
      happens[{"compute", self}].push_back(computes);
      if (computes) {
        run.batches[i].push_back(ReadBatch(step.at("batch_next").at(i)));
      }
      for (const json& arc : run.golden.at("graph").at("edges")) {
        if (arc[0].get<size_t>() != i) continue;
        const json& sent = step.at("vhat");
        happens[{"send", NodeName(arc[1].get<int64_t>())}].push_back(
            std::find(sent.begin(), sent.end(), arc) != sent.end());
      }
    }
  }
}

void ScriptStart(MassRun& run) {
  if (!run.golden.contains("init")) return;
  const json& init = run.golden.at("init");
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    if (!init.contains("v")) {
      run.batches[i].push_back(ReadBatch(init.at("batch").at(i)));
      continue;
    }
    const bool computes = init.at("v").at(i).get<bool>();
    run.nodes[i]
        ->decisions.happens[{"compute", NodeName(static_cast<int64_t>(i))}]
        .push_back(computes);
    if (computes) {
      run.batches[i].push_back(ReadBatch(init.at("batch").at(i)));
    }
  }
}

// What is told before round k: whether it mixes, and the nu that it moves by.
void CheckBefore(MassRun& run, const json& step, int64_t k) {
  const State* want = run.golden.StateAfter(k);
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const core::Algorithm& algorithm = run.nodes[i]->algorithm();
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
  MassRun run{golden, MakeProblems(golden.at("problem")), {}, {}, {}, {}};
  CheckProblems(golden, run.problems);
  if (testing::Test::HasFatalFailure()) return;
  const std::string algorithm = golden.algorithm();
  const core::KnobValues knobs = MassKnobs(golden);
  run.batches.resize(run.problems.size());
  run.before.resize(run.problems.size());
  run.given.resize(run.problems.size());
  core::Network network;
  network.graph = ArcsOf(golden, static_cast<int64_t>(run.problems.size()));
  for (size_t i = 0; i < run.problems.size(); ++i) {
    network.members.push_back(NodeName(static_cast<int64_t>(i)));
  }
  for (size_t i = 0; i < run.problems.size(); ++i) {
    core::NodePlan plan = MakePlan(algorithm, static_cast<int64_t>(i), knobs);
    SetNeighbours(golden, static_cast<int64_t>(i), &plan);
    plan.place = static_cast<int64_t>(i);
    network.knobs = plan.knobs;
    const core::AlgorithmInfo& info = **core::FindAlgorithm(algorithm);
    if (info.derive != nullptr) plan.facts = info.derive(network);
    run.nodes.push_back(std::make_unique<GoldenNode>(
        algorithm, std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *run.problems[i], 1,
        0));
    for (size_t j = 0; j < run.problems.size(); ++j) {
      if (j == i) continue;
      run.nodes[i]->Handle(core::PeerUp{NodeName(static_cast<int64_t>(j))});
    }
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

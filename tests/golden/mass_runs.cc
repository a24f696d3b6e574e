#include "tests/golden/mass_runs.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/mass_rounds.h"
#include "daemon/core/replica_rounds.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_network.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

using Batch = std::vector<int64_t>;

core::KnobValues KnobsOf(const json& golden) {
  const json& params = golden.at("params");
  core::KnobValues knobs;
  for (const char* name :
       {"alpha", "beta", "gamma", "eta", "eta_c", "R0", "rho"}) {
    if (params.contains(name)) knobs[name] = params.at(name).get<double>();
  }
  for (const char* name : {"T0", "K", "bits"}) {
    if (params.contains(name)) knobs[name] = params.at(name).get<int64_t>();
  }
  if (params.contains("option")) {
    knobs["option"] = params.at("option").get<std::string>();
  }
  if (params.contains("prox")) {
    const json& prox = params.at("prox");
    knobs["prox"] = prox.at("type").get<std::string>();
    for (const char* name : {"lambda", "theta", "a"}) {
      if (prox.contains(name)) knobs[name] = prox.at(name).get<double>();
    }
  }
  if (params.contains("compressor")) {
    const json& compressor = params.at("compressor");
    knobs["compressor"] = compressor.at("type").get<std::string>();
    // How many are kept: told, or as many as the first mask holds.
    int64_t kept = compressor.value("k", int64_t{0});
    for (const char* mask : {"mask", "mask_h"}) {
      const json& step = golden.at("schedule").at(0);
      if (step.contains(mask)) {
        kept = static_cast<int64_t>(step.at(mask).at(0).size());
      }
    }
    knobs["rate"] = static_cast<double>(kept) / golden.at("n").get<double>();
  }
  const std::string algorithm = golden.at("algorithm");
  if (algorithm == "spod-gt" || algorithm == "sporadic-k-gt") {
    knobs["unbias"] = std::string("off");
  }
  return knobs;
}

// The neighbours of `self`: by W, or by A and B.
void SetNeighbours(const json& golden, int64_t self, core::NodePlan* plan) {
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

// A run and the gradients that are still to be computed.
struct MassRun {
  const json& golden;
  std::vector<std::unique_ptr<core::Problem>> problems;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  std::vector<std::deque<Batch>> batches;

  core::MassRounds& rounds(size_t i) {
    return dynamic_cast<core::MassRounds&>(nodes[i]->algorithm());
  }
};

core::RemoteModel Remote(std::vector<float> values, int64_t round) {
  core::RemoteModel model;
  model.parameters =
      std::make_unique<core::PlainRemoteVector>(std::move(values));
  model.step = round;
  return model;
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
    const Batch batch = std::move(run.batches[self].front());
    run.batches[self].pop_front();
    node().Gradient(batch);
  }
  void operator()(core::Push push) const {
    const std::vector<float> values = node().TakePushed();
    for (const NodeId& to : push.peers) {
      peer(to).Handle(core::PushArrived{name(), Remote(values, push.round)});
    }
  }
  void operator()(core::Give give) const {
    core::RemoteModel mass =
        Remote({give.mass->begin(), give.mass->end()}, give.round);
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
  void operator()(core::WakeAfter wake) const {
    // Deadlines do not pass.
    if (wake.delay == absl::ZeroDuration()) {
      node().Handle(core::TimerFired{wake.timer});
    }
  }
  void operator()(core::StepDone) const { done = true; }
  void operator()(core::CancelTimer) const {}
  template <typename Other>
  void operator()(Other) const {
    FAIL() << "an action that these algorithms do not have";
  }
};

void PlayRound(MassRun& run) {
  for (const auto& node : run.nodes) node->Handle(core::StepBegins{});
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
      run.nodes[i]->decisions.coordinates[purpose].push_back(
          step.at(mask).at(i).get<std::vector<int64_t>>());
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

// What the ledger conserves, from the states that are on record; empty: it is
// not.
std::vector<double> Conserved(const json& golden, const json& want, size_t i) {
  const std::string algorithm = golden.at("algorithm");
  if (algorithm == "anq-nids") {
    auto u = want.at("D").at(i).get<std::vector<double>>();
    for (double& value : u) {
      value *= -golden.at("params").at("alpha").get<double>();
    }
    return u;
  }
  if (!want.contains("c") && !want.contains("y") && algorithm != "sgp") {
    return {};
  }
  if (algorithm == "sgp") return want.at("x").at(i).get<std::vector<double>>();
  if (algorithm == "k-gt") return want.at("c").at(i).get<std::vector<double>>();
  auto z = want.at("y").at(i).get<std::vector<double>>();
  const double beta = golden.at("params").value("beta", 1.0);
  for (size_t l = 0; l < z.size(); ++l) {
    z[l] -= beta * want.at("g").at(i).at(l).get<double>();
  }
  return z;
}

// Replicas, the node's own and its neighbours' copies of it.
void CheckReplicas(MassRun& run, const json& want, int64_t k) {
  std::vector<const char*> parts = {"xhat"};
  if (want.contains("h")) parts = {"h"};
  if (want.contains("g")) parts.push_back("g");
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const NodeId self = NodeName(static_cast<int64_t>(i));
    auto& rounds = dynamic_cast<core::ReplicaRounds&>(run.rounds(i));
    const size_t n = run.nodes[i]->parameters.size();
    for (size_t q = 0; q < parts.size(); ++q) {
      const auto begin = rounds.replica().begin() + q * n;
      EXPECT_EQ(
          Difference(parts[q], {begin, begin + n}, want.at(parts[q]).at(i)), "")
          << "round " << k << " node " << i;
    }
    for (size_t j = 0; j < run.nodes.size(); ++j) {
      const FlatVector* copy =
          dynamic_cast<core::ReplicaRounds&>(run.rounds(j)).replica_of(self);
      if (copy != nullptr) {
        EXPECT_EQ(*copy, rounds.replica());
      }
    }
  }
}

void CheckStates(MassRun& run, const json& want, int64_t k) {
  const bool push_sum = run.golden.at("algorithm") == "sgp";
  if (dynamic_cast<core::ReplicaRounds*>(&run.rounds(0)) != nullptr) {
    CheckReplicas(run, want, k);
  }
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    EXPECT_EQ(Difference("x", run.nodes[i]->parameters,
                         want.at(push_sum ? "z" : "x").at(i)),
              "")
        << "round " << k << " node " << i;
    const absl::Span<const float> z = run.rounds(i).conserved();
    const std::vector<double> conserved = Conserved(run.golden, want, i);
    if (!conserved.empty()) {
      EXPECT_EQ(Difference("conserved", {z.begin(), z.end()}, conserved), "")
          << "round " << k << " node " << i;
    }
    const auto gauges = run.nodes[i]->algorithm().Gauges();
    EXPECT_NEAR(gauges.at("mass_imbalance"), 0, 1e-9);
    if (push_sum) {
      EXPECT_TRUE(Close(gauges.at("omega"), want.at("omega").at(i)));
    }
  }
}

// What is measured beside x, after round k.
void CheckAuxiliary(MassRun& run, int64_t k) {
  const std::string algorithm = run.golden.at("algorithm");
  for (const std::string& symbol :
       (*core::FindAlgorithm(algorithm))->auxiliary) {
    // nu is told before the round that moves by it.
    const json* want = StateAfter(run.golden, symbol == "nu" ? k + 1 : k);
    if (want == nullptr) continue;
    for (size_t i = 0; i < run.nodes.size(); ++i) {
      const FlatVector got = run.nodes[i]->algorithm().Auxiliary(symbol);
      EXPECT_EQ(
          Difference(symbol, {got.begin(), got.end()}, want->at(symbol).at(i)),
          "")
          << "round " << k << " node " << i;
    }
  }
}

}  // namespace

void RunMass(const json& golden) {
  MassRun run{golden, MakeProblems(golden.at("problem")), {}, {}};
  const std::string algorithm = golden.at("algorithm");
  const core::KnobValues knobs = KnobsOf(golden);
  run.batches.resize(run.problems.size());
  for (size_t i = 0; i < run.problems.size(); ++i) {
    core::NodePlan plan;
    plan.self = NodeName(static_cast<int64_t>(i));
    auto resolved =
        core::Knobs::Resolve((*core::FindAlgorithm(algorithm))->knobs, knobs);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    plan.knobs = *std::move(resolved);
    SetNeighbours(golden, static_cast<int64_t>(i), &plan);
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
    PlayRound(run);
    if (testing::Test::HasFatalFailure()) return;
    if (const json* want = StateAfter(golden, k)) CheckStates(run, *want, k);
    CheckAuxiliary(run, k);
    ++k;
  }
}

}  // namespace dfl::golden

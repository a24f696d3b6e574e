#include "tests/golden/mass_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/graph/graph.h"
#include "daemon/core/graph/mixing.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/prox.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_network.h"

namespace dfl::golden {
namespace {

using nlohmann::json;

using Batch = std::vector<int64_t>;

core::KnobValues KnobsOf(const Case& golden) {
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
  if (params.contains("prox")) AddProxKnobs(params.at("prox"), knobs);
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
  const std::string algorithm = golden.algorithm();
  if (algorithm == "spod-gt" || algorithm == "sporadic-k-gt") {
    knobs["unbias"] = std::string("off");
  }
  return knobs;
}

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

// The newest parcel that a node gave.
struct Given {
  FlatVector mass;
  bool increments = false;
  NodeId to;
};

// What is known of a node as its round begins.
struct Before {
  std::vector<float> x;
  FlatVector replica;
  double range = 0;  // of anq-nids
};

// A run and the gradients that are still to be computed.
struct MassRun {
  const Case& golden;
  std::vector<std::unique_ptr<simports::Problem>> problems;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  std::vector<std::deque<Batch>> batches;
  // Of the present round.
  std::vector<Before> before;
  std::vector<std::optional<Given>> given;

  core::MassRounds& rounds(size_t i) {
    return dynamic_cast<core::MassRounds&>(nodes[i]->algorithm());
  }
  // Null: it keeps none.
  core::ReplicaRounds* replicas(size_t i) {
    return dynamic_cast<core::ReplicaRounds*>(&nodes[i]->algorithm());
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
    run.given[self] = Given{*give.mass, give.steps != nullptr, give.to};
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

// What the ledger conserves, from the states that are on record; empty: it is
// not.
std::vector<double> Conserved(const Case& golden, const State& want, size_t i) {
  const std::string algorithm = golden.algorithm();
  const auto row = [&](const char* field) {
    return want.at(field).at(i).get<std::vector<double>>();
  };
  if (algorithm == "k-gt" && want.contains("c")) return row("c");
  if (algorithm == "beer" || !want.contains("y") || !want.contains("g")) {
    return {};
  }
  std::vector<double> z = row("y");
  const double beta = golden.at("params").value("beta", 1.0);
  for (size_t l = 0; l < z.size(); ++l) {
    z[l] -= beta * want.at("g").at(i).at(l).get<double>();
  }
  return z;
}

// Replicas, the node's own and its neighbours' copies of it.
void CheckReplicas(MassRun& run, const State& want) {
  std::vector<const char*> parts = {"h"};
  if (run.golden.algorithm() == "choco-sgd") parts = {"xhat"};
  if (run.golden.algorithm() == "beer") parts.push_back("g");
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    const NodeId self = NodeName(static_cast<int64_t>(i));
    const FlatVector& replica = run.replicas(i)->replica();
    const size_t n = run.nodes[i]->parameters.size();
    for (size_t q = 0; q < parts.size(); ++q) {
      ExpectRow(want, parts[q], i,
                absl::MakeConstSpan(replica).subspan(q * n, n));
    }
    for (size_t j = 0; j < run.nodes.size(); ++j) {
      const FlatVector* copy = run.replicas(j)->replica_of(self);
      if (copy == nullptr) continue;
      EXPECT_EQ(*copy, replica) << "node " << j << "'s of node " << i;
    }
  }
}

// What node i added to its replica in this round, from what it sent. A lone
// node sends nothing.
FlatVector Increments(MassRun& run, size_t i) {
  const auto& given = run.given[i];
  FlatVector sent = given ? given->mass : run.replicas(i)->replica();
  if (given && given->increments) return sent;
  const FlatVector& before = run.before[i].replica;
  for (size_t l = 0; l < sent.size(); ++l) {
    // 0: as it was.
    sent[l] = sent[l] == 0 ? 0 : sent[l] - before[l];
  }
  return sent;
}

// d of anq-nids in this round.
double CodeStep(const MassRun& run, size_t i) {
  const auto bits = run.golden.at("params").at("bits").get<int>();
  return 2 * run.before[i].range / (std::exp2(bits) - 1);
}

// One step of d does not show in h: which of two codes is the nearest may be up
// to rounding.
bool StepsAreFine(const MassRun& run, size_t i) {
  return CodeStep(run, i) < kTolerance;
}

// The integers that node i sent in anq-nids.
void CheckCodes(MassRun& run, const State& want, size_t i) {
  if (!want.contains("code")) return;
  const double d = CodeStep(run, i);
  const double slack = StepsAreFine(run, i) ? 2 : 0;
  const FlatVector added = Increments(run, i);
  const json& codes = want.at("code").at(i);
  ASSERT_EQ(codes.size(), added.size());
  for (size_t l = 0; l < added.size(); ++l) {
    EXPECT_NEAR(std::rint(added[l] / d - 0.5), codes.at(l).get<double>(), slack)
        << "after step " << want.k() << ", code[" << l << "] of node " << i;
  }
}

// z of k-gt: of it W_ij goes to each neighbour j. A lone node keeps it, and its
// model is what it was trained to.
FlatVector LocalMean(MassRun& run, size_t i) {
  const auto& given = run.given[i];
  const json& params = run.golden.at("params");
  FlatVector z;
  if (given) {
    z = given->mass;
    const double weight = run.golden.at("W").at(i).at(NodeIndex(given->to));
    for (float& value : z) value = static_cast<float>(value / weight);
    return z;
  }
  const double length =
      params.at("K").get<double>() * params.at("eta_c").get<double>();
  for (size_t l = 0; l < run.before[i].x.size(); ++l) {
    z.push_back(static_cast<float>(
        (run.before[i].x[l] - run.nodes[i]->parameters[l]) / length));
  }
  return z;
}

// mu and g of depositum; g of spod-gt and its kin.
void CheckGradientState(MassRun& run, const State& want, size_t i) {
  GoldenNode& node = *run.nodes[i];
  FlatVector g(node.gradient().begin(), node.gradient().end());
  const core::AlgorithmState state = node.algorithm().ExportState();
  if (run.golden.algorithm() != "depositum") {
    // v, and no scale: 1 or 0.
    const double v = std::get<double>(state.fields.at("v"));
    for (float& value : g) value *= static_cast<float>(v);
    ExpectRow(want, "g", i, g);
    return;
  }
  ExpectRow(want, "g", i, g);
  FlatVector mu(g.size(), 0.0F);
  if (run.golden.at("params").at("option") == "nesterov") {
    mu = std::get<FlatVector>(state.fields.at("momentum"));
  }
  ExpectRow(want, "mu", i, mu);
}

// (1/m) sum f_i + h at the mean model.
void CheckPhi(MassRun& run, const State& want) {
  if (!want.contains("phi_mean")) return;
  const auto m = static_cast<double>(run.nodes.size());
  std::vector<float> mean(run.nodes[0]->parameters.size());
  for (size_t l = 0; l < mean.size(); ++l) {
    double sum = 0;
    for (const auto& node : run.nodes) sum += node->parameters[l];
    mean[l] = static_cast<float>(sum / m);
  }
  double phi = 0;
  for (const auto& problem : run.problems) phi += problem->Loss(mean) / m;
  const auto knobs = core::Knobs::Resolve(
      (*core::FindAlgorithm("depositum"))->knobs, KnobsOf(run.golden));
  ASSERT_TRUE(knobs.ok()) << knobs.status();
  phi += core::Penalty(core::ProxOf(*knobs), mean);
  EXPECT_TRUE(Close(phi, want.at("phi_mean")))
      << phi << ", not " << want.at("phi_mean") << ", after step " << want.k();
}

// What is kept of one algorithm only.
void CheckOwnStates(MassRun& run, const State& want, size_t i) {
  const std::string algorithm = run.golden.algorithm();
  const absl::Span<const float> conserved = run.rounds(i).conserved();
  if (algorithm == "sgp") {
    ExpectRow(want, "z", i, run.nodes[i]->parameters);
    ExpectRow(want, "x", i, conserved);
    ExpectValue(want, "omega", i,
                run.nodes[i]->algorithm().Gauges().at("omega"));
  } else if (algorithm == "k-gt") {
    ExpectRow(want, "z", i, LocalMean(run, i));
  } else if (algorithm == "choco-sgd") {
    ExpectRow(want, "q", i, Increments(run, i));
  } else if (algorithm == "anq-nids") {
    CheckCodes(run, want, i);
    // u = -alpha D is conserved.
    const double alpha = run.golden.at("params").at("alpha");
    const double slack = StepsAreFine(run, i) ? CodeStep(run, i) / alpha : 0;
    for (size_t l = 0; want.contains("D") && l < conserved.size(); ++l) {
      const double wanted = want.at("D").at(i).at(l);
      EXPECT_NEAR(-conserved[l] / alpha, wanted,
                  slack + kTolerance * std::max(1.0, std::fabs(wanted)))
          << "after step " << want.k() << ", D[" << l << "] of node " << i;
    }
  } else if (algorithm != "beer" && algorithm != "nids") {
    CheckGradientState(run, want, i);
  }
}

void CheckStates(MassRun& run, const State& want) {
  if (run.replicas(0) != nullptr) CheckReplicas(run, want);
  const auto* info = *core::FindAlgorithm(run.golden.algorithm());
  for (size_t i = 0; i < run.nodes.size(); ++i) {
    if (info->name != "sgp") {
      ExpectRow(want, "x", i, run.nodes[i]->parameters);
    }
    CheckOwnStates(run, want, i);
    for (const std::string& symbol : info->auxiliary) {
      if (symbol == "nu") continue;  // before the round
      ExpectRow(want, symbol, i, run.nodes[i]->algorithm().Auxiliary(symbol));
    }
    const std::vector<double> conserved = Conserved(run.golden, want, i);
    if (!conserved.empty()) {
      EXPECT_EQ(Difference("conserved", run.rounds(i).conserved(), conserved),
                "")
          << "after step " << want.k() << ", node " << i;
    }
    EXPECT_NEAR(run.nodes[i]->algorithm().Gauges().at("mass_imbalance"), 0,
                1e-9);
  }
  CheckPhi(run, want);
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
std::vector<double> LeastOmegaOf(const Case& golden, int64_t nodes) {
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
  return core::LeastOmega(graph);
}

}  // namespace

void RunMass(const Case& golden) {
  MassRun run{golden, MakeProblems(golden.at("problem")), {}, {}, {}, {}};
  CheckProblems(golden, run.problems);
  if (testing::Test::HasFatalFailure()) return;
  const std::string algorithm = golden.algorithm();
  const core::KnobValues knobs = KnobsOf(golden);
  run.batches.resize(run.problems.size());
  run.before.resize(run.problems.size());
  run.given.resize(run.problems.size());
  const std::vector<double> least_omega =
      LeastOmegaOf(golden, static_cast<int64_t>(run.problems.size()));
  for (size_t i = 0; i < run.problems.size(); ++i) {
    core::NodePlan plan;
    plan.self = NodeName(static_cast<int64_t>(i));
    auto resolved =
        core::Knobs::Resolve((*core::FindAlgorithm(algorithm))->knobs, knobs);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    plan.knobs = *std::move(resolved);
    SetNeighbours(golden, static_cast<int64_t>(i), &plan);
    plan.least_omega = least_omega[i];
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

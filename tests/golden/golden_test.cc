// Every golden vector of an algorithm in the catalogue, driven through the core
// objects. DFL_GOLDEN_DIR=folder takes other cases of the same format.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/algorithms/kd_pdfl.h"
#include "daemon/core/graph/mixing.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/mass_runs.h"
#include "tests/golden/table_checks.h"

namespace dfl::golden {
namespace {

using core::KnobValues;
using nlohmann::json;

core::NodePlan MakePlan(const std::string& algorithm, int64_t self,
                        const KnobValues& knobs) {
  core::NodePlan plan;
  plan.self = NodeName(self);
  auto resolved =
      core::Knobs::Resolve((*core::FindAlgorithm(algorithm))->knobs, knobs);
  EXPECT_TRUE(resolved.ok()) << resolved.status();
  plan.knobs = *std::move(resolved);
  return plan;
}

// Neighbours of `self` with their weights: the off-diagonal non-zeros of W's
// row.
void SetRow(const json& row, int64_t self, core::NodePlan* plan) {
  plan->neighbours.clear();
  for (int64_t j = 0; j < static_cast<int64_t>(row.size()); ++j) {
    const double weight = row[j].get<double>();
    if (j == self) {
      plan->self_weight = weight;
    } else if (weight != 0) {
      plan->neighbours.push_back({NodeName(j), weight});
    }
  }
}

// ------------------------------------------------------------------ PaME ----

// The answer `coords` of a sender whose model is `model`.
core::RemoteModel PartialAnswer(const std::vector<float>& model,
                                const json& coords) {
  std::vector<int64_t> coordinates = coords.get<std::vector<int64_t>>();
  std::vector<float> values;
  values.reserve(coordinates.size());
  for (const int64_t l : coordinates) values.push_back(model[l]);
  core::RemoteModel answer;
  answer.parameters = std::make_unique<core::PlainRemoteVector>(
      static_cast<int64_t>(model.size()), std::move(coordinates),
      std::move(values));
  return answer;
}

core::NodePlan PamePlan(const Case& golden, int64_t node, int64_t extra) {
  const json& params = golden.at("params");
  const auto kappa = params.at("kappa").at(node).get<int64_t>();
  core::NodePlan plan =
      MakePlan("pame", node,
               {{"nu", params.at("nu").at(node).get<double>()},
                {"p", params.at("p").at(node).get<double>()},
                {"sigma0", params.at("sigma0").at(node).get<double>()},
                {"gamma", params.at("gamma").at(node).get<double>()},
                {"kappa", core::IntRange{kappa, kappa}},
                {"lookahead", int64_t{0}},
                {"extra_asked", extra}});
  const core::Graph graph =
      MakeGraph(golden.at("m").get<int64_t>(), golden.at("graph").at("edges"));
  for (const int64_t j : graph.neighbours(node)) {
    plan.neighbours.push_back({NodeName(j), 0});
  }
  return plan;
}

std::vector<std::unique_ptr<GoldenNode>> MakePameNodes(
    const Case& golden,
    const std::vector<std::unique_ptr<simports::Problem>>& problems) {
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    nodes.push_back(std::make_unique<GoldenNode>(
        "pame", PamePlan(golden, static_cast<int64_t>(i), 0),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
  }
  return nodes;
}

// Everybody begins step k; who exchanges asks, and every answer is taken from
// its sender's model before the step.
void PameExchange(const Case& golden, const json& step,
                  const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  struct Delivery {
    size_t to;
    core::AnswerArrived event;
  };
  std::vector<Delivery> deliveries;
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    const json& pull = step.at("pull").at(i);
    node.decisions.asked.clear();
    node.decisions.asked_is_scripted = !pull.is_null();
    if (!pull.is_null()) {
      for (const json& j : pull.at("asked")) {
        node.decisions.asked.push_back(NodeName(j.get<int64_t>()));
      }
      // How many are asked beyond those needed is up to the script.
      const auto need = pull.at("need").get<int64_t>();
      const auto asked = static_cast<int64_t>(pull.at("asked").size());
      if (asked > 0) {
        EXPECT_EQ(need, golden.at("params").at("m_init").at(i).get<int64_t>());
      }
      node.Handle(
          core::PlanChanged{PamePlan(golden, static_cast<int64_t>(i),
                                     std::max(asked - need, int64_t{0}))});
    }
    node.Handle(core::StepBegins{});
    core::Ask ask;
    ASSERT_EQ(node.Take(&ask), !pull.is_null()) << "node " << i;
    ASSERT_EQ(node.decisions.wrong_counts, 0) << "node " << i;
    if (pull.is_null()) continue;
    for (const json& scripted : pull.at("answers")) {
      const auto from = scripted.at("from").get<size_t>();
      GoldenNode& sender = *nodes[from];
      ASSERT_TRUE(sender.algorithm().parameters_settled());
      sender.Handle(core::AskArrived{NodeName(i), ask.ask});
      core::Answer answer;
      ASSERT_TRUE(sender.Take(&answer));
      EXPECT_EQ(core::SentCoordinates(answer.rate, sender.parameters.size()),
                golden.at("params").at("s").at(from).get<int64_t>());
      deliveries.push_back(
          {i, core::AnswerArrived{
                  NodeName(scripted.at("from").get<int64_t>()), ask.ask,
                  PartialAnswer(sender.parameters, scripted.at("coords"))}});
    }
  }
  for (Delivery& delivery : deliveries) {
    nodes[delivery.to]->Handle(std::move(delivery.event));
  }
  // The deadline passes for whoever still waits.
  for (const auto& node : nodes) {
    core::WakeAfter wake;
    if (node->Take(&wake)) node->Handle(core::TimerFired{wake.timer});
  }
}

void RunPame(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  const auto nodes = MakePameNodes(golden, problems);
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->algorithm().Gauges().at("m"),
              golden.at("params").at("m_init").at(i).get<double>());
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PameExchange(golden, step, nodes);
    if (testing::Test::HasFatalFailure()) return;
    const State* want = golden.StateAfter(k);
    for (size_t i = 0; i < nodes.size(); ++i) {
      GoldenNode& node = *nodes[i];
      core::ComputeGradient compute;
      ASSERT_TRUE(node.Take(&compute)) << "step " << k << " node " << i;
      const std::vector<float> vbar = node.parameters;
      node.Gradient(ReadBatch(step.at("batch").at(i)));
      core::StepDone done;
      ASSERT_TRUE(node.Take(&done));
      EXPECT_EQ(node.algorithm().step(), k + 1);
      if (want == nullptr) continue;
      ExpectRow(*want, "x", i, node.parameters);
      ExpectRow(*want, "vbar", i, vbar);
      const auto gauges = node.algorithm().Gauges();
      ExpectValue(*want, "sigma", i, gauges.at("sigma"));
      ExpectValue(*want, "m", i, gauges.at("m"));
    }
    ++k;
  }
}

// --------------------------------------------------- synchronous rounds ----

// The knobs of a run, by our names.
KnobValues RoundKnobs(const Case& golden) {
  const json& params = golden.at("params");
  KnobValues knobs;
  for (const char* name : {"eta", "delta", "Gamma", "mu", "theta", "rho"}) {
    if (params.contains(name)) knobs[name] = params.at(name).get<double>();
  }
  for (const char* name : {"E", "K", "s"}) {
    if (params.contains(name)) knobs[name] = params.at(name).get<int64_t>();
  }
  if (!params.contains("mode")) return knobs;
  knobs["form"] = params.at("mode").get<std::string>();
  knobs["sample_weighting"] = params.at("sample_weighting").get<bool>();
  return knobs;
}

// The nodes of a list, sorted.
std::vector<NodeId> Named(const json& indices) {
  std::vector<NodeId> names;
  for (const json& i : indices) names.push_back(NodeName(i.get<int64_t>()));
  std::sort(names.begin(), names.end());
  return names;
}

// A model on its way, as it was when it was pushed.
struct Pushed {
  int64_t from;
  std::vector<NodeId> to;
  std::vector<float> model;
};

// Adds what `node` has asked to push, if anything.
void TakePush(GoldenNode& node, int64_t from, int64_t round,
              std::vector<Pushed>& pushes) {
  core::Push push;
  if (!node.Take(&push)) return;
  EXPECT_EQ(push.round, round);
  EXPECT_TRUE(push.values.empty());
  pushes.push_back({from, push.peers, node.TakePushed()});
}

// Nobody was missed: the deadlines that were set do not pass.
void ExpectNobodyMissed(GoldenNode& node) {
  core::WakeAfter deadline;
  while (node.Take(&deadline)) continue;
  core::Missed missed;
  EXPECT_FALSE(node.Take(&missed));
}

core::RemoteModel WholeModel(const std::vector<float>& values, int64_t round) {
  core::RemoteModel model;
  model.parameters = std::make_unique<core::PlainRemoteVector>(values);
  model.step = round;
  return model;
}

// A run of synchronous rounds under way.
struct RoundRun {
  const Case& golden;
  std::string algorithm;
  std::vector<std::unique_ptr<simports::Problem>> problems;
  KnobValues knobs;
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
    KnobValues knobs = run.knobs;
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
  // A step of dfedsam takes two gradients on one batch.
  const int gradients = run.algorithm == "dfedsam" ? 2 : 1;
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
    for (const char* trained : {"x_local", "z"}) {
      if (want != nullptr) ExpectRow(*want, trained, i, node.parameters);
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

void RunRounds(const Case& golden) {
  RoundRun run{golden,
               golden.algorithm(),
               MakeProblems(golden.at("problem")),
               RoundKnobs(golden),
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

// ---------------------------------------------------------------- fedmid ----

KnobValues FedmidKnobs(const json& params) {
  KnobValues knobs = {{"eta_c", params.at("eta_c").get<double>()},
                      {"eta_s", params.at("eta_s").get<double>()},
                      {"K", params.at("K").get<int64_t>()}};
  AddProxKnobs(params.at("prox"), knobs);
  return knobs;
}

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

void RunFedmid(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan =
        MakePlan("fedmid", self, FedmidKnobs(golden.at("params")));
    plan.member_count = golden.at("m").get<int64_t>();
    const json& edges = golden.at("graph").at("edges");
    plan.hubs = {NodeName(HubOf(edges))};
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

// -------------------------------------------------------------- epidemic ----

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

void RunEpidemic(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    core::NodePlan plan =
        MakePlan("epidemic", static_cast<int64_t>(i), RoundKnobs(golden));
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

// ------------------------------------------------------ asynchronous DSGD ----

// A node and its gradient under way.
struct ClockedNode {
  std::unique_ptr<GoldenNode> node;
  std::vector<float> model;  // the gradient is at this one
  int64_t from_round = -1;   // of that round; -1: none is under way
};

std::vector<ClockedNode> MakeClockedNodes(
    const Case& golden,
    const std::vector<std::unique_ptr<simports::Problem>>& problems) {
  const std::string algorithm = golden.algorithm();
  const json& params = golden.at("params");
  std::vector<ClockedNode> nodes(problems.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    KnobValues knobs = {{"eta", params.at("eta").get<double>()},
                        {"xi", params.at("xi").get<double>()}};
    if (algorithm != "sync-dsgd") {
      knobs["measure_q"] = false;
      knobs["q"] = std::clamp(params.at("q").at(i).get<double>(), 0.0, 0.99);
    }
    core::NodePlan plan = MakePlan(algorithm, static_cast<int64_t>(i), knobs);
    for (const json& q : params.at("q")) {
      plan.largest_q =
          std::max(plan.largest_q, std::clamp(q.get<double>(), 0.0, 0.99));
    }
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
  EXPECT_EQ(clocks, golden.at("algorithm") != "sync-dsgd");
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

// --------------------------------------------------------------- KD-PDFL ----

std::vector<core::Neighbour> NeighboursOf(const Case& golden, int64_t node) {
  std::vector<core::Neighbour> neighbours;
  for (const json& edge : golden.at("graph").at("edges")) {
    for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 0}}) {
      if (edge.at(a) == node) neighbours.push_back({NodeName(edge.at(b)), 0});
    }
  }
  std::sort(neighbours.begin(), neighbours.end(),
            [](const auto& a, const auto& b) { return a.node < b.node; });
  return neighbours;
}

const core::KdPdfl& AsKdPdfl(GoldenNode& node) {
  return static_cast<const core::KdPdfl&>(node.algorithm());
}

// Whether a round has a node that neither trains nor has anything else to do:
// else only the star and its adopters skip a local step.
bool LiteralRounds(const Case& golden) {
  const json& params = golden.at("params");
  if (params.contains("literal_rounds")) return params.at("literal_rounds");
  for (const json& step : golden.at("schedule")) {
    std::set<int64_t> busy;
    if (!step.at("star").is_null()) {
      busy.insert(step.at("star").at("node").get<int64_t>());
    }
    if (params.at("adopt") && !step.at("deliver").is_null()) {
      for (const json& to : step.at("deliver").at("to")) {
        busy.insert(to.get<int64_t>());
      }
    }
    for (size_t i = 0; i < step.at("local").size(); ++i) {
      if (step.at("local").at(i).is_null() &&
          busy.count(static_cast<int64_t>(i)) == 0) {
        return true;
      }
    }
  }
  return false;
}

core::NodePlan KdPdflPlan(const Case& golden, int64_t node, int64_t subset) {
  const json& params = golden.at("params");
  core::NodePlan plan = MakePlan("kd-pdfl", node,
                                 {{"eta", params.at("eta").get<double>()},
                                  {"T_ex", params.at("T_ex").get<int64_t>()},
                                  {"subset", subset},
                                  {"mu1", params.at("mu1").get<double>()},
                                  {"mu2", params.at("mu2").get<double>()},
                                  {"c_base", params.at("c_base").get<double>()},
                                  {"adopt", params.at("adopt").get<bool>()},
                                  {"stars", std::string("drawn")},
                                  {"literal_rounds", LiteralRounds(golden)}});
  plan.place = node;
  plan.member_count = golden.at("m").get<int64_t>();
  plan.neighbours = NeighboursOf(golden, node);
  return plan;
}

// The learner's part: predictions of `batch` by the node and by `models`.
core::Predicted PredictWith(const simports::Problem& problem,
                            const std::vector<float>& own,
                            const std::vector<core::ModelValues>& models,
                            const std::vector<int64_t>& batch) {
  const auto& softmax = dynamic_cast<const simports::Softmax&>(problem);
  const auto classes = static_cast<size_t>(softmax.classes());
  core::Predicted predicted;
  predicted.rows = static_cast<int64_t>(batch.size());
  const auto add = [&](absl::Span<const float> w) {
    std::vector<double> p(batch.size() * classes);
    for (size_t i = 0; i < batch.size(); ++i) {
      softmax.Predict(w, batch[i],
                      absl::MakeSpan(p).subspan(i * classes, classes));
    }
    predicted.probabilities.push_back(std::move(p));
  };
  add(own);
  for (const core::ModelValues& model : models) add(model.parameters);
  return predicted;
}

// The star of a round; `before` = all models as the round began.
void PlayStar(const json& star, int64_t k,
              const std::vector<std::vector<float>>& before,
              const std::vector<std::unique_ptr<simports::Problem>>& problems,
              const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  const auto self = star.at("node").get<size_t>();
  GoldenNode& node = *nodes[self];
  core::Ask ask;
  ASSERT_TRUE(node.Take(&ask)) << "round " << k;
  const json& received = star.at("received");
  for (const NodeId& peer : ask.peers) {
    const int64_t j = NodeIndex(peer);
    nodes[j]->Handle(core::AskArrived{NodeName(self), ask.ask});
    core::Answer answer;
    ASSERT_TRUE(nodes[j]->Take(&answer));
    EXPECT_EQ(answer.rate, 1);
    if (std::find(received.begin(), received.end(), json(j)) !=
        received.end()) {
      node.Handle(core::AnswerArrived{peer, ask.ask, WholeModel(before[j], k)});
    } else {
      node.Handle(core::AnswerMissing{peer, ask.ask});
    }
  }
  core::Predict predict;
  ASSERT_EQ(node.Take(&predict), !received.empty()) << "round " << k;
  if (received.empty()) return;
  ASSERT_EQ(predict.models->size(), received.size());
  node.Handle(PredictWith(*problems[self], node.parameters, *predict.models,
                          RowsOf(star.at("batch"), *problems[self])));
}

// `want`'s lists are in the order of `received`.
void CheckStarState(const json& want, const json& received,
                    const core::KdPdfl::Star& star) {
  const auto check = [&](const char* what, const std::vector<double>& got) {
    ASSERT_EQ(got.size(), received.size()) << what;
    std::vector<float> ordered;
    for (const json& j : received) {
      const auto it = std::find(star.received.begin(), star.received.end(),
                                NodeName(j.get<int64_t>()));
      ASSERT_NE(it, star.received.end()) << j;
      ordered.push_back(static_cast<float>(got[it - star.received.begin()]));
    }
    EXPECT_EQ(Difference(what, ordered, want.at(what)), "");
  };
  check("d", star.distances);
  check("grad", star.gradient);
  check("raw", star.raw);
  EXPECT_TRUE(Close(star.norm, want.at("norm"))) << star.norm;
  EXPECT_TRUE(Close(star.own_share, want.at("c"))) << star.own_share;
}

// The weights that node i gives to the others.
std::vector<float> CollabRow(GoldenNode& node, int64_t i, int64_t m) {
  std::vector<float> row;
  for (int64_t j = 0; j < m; ++j) {
    row.push_back(
        j == i ? 0.0F : static_cast<float>(AsKdPdfl(node).weight(NodeName(j))));
  }
  return row;
}

void PlayKdPdflRound(
    const Case& golden, const json& step, int64_t k,
    const std::vector<std::unique_ptr<simports::Problem>>& problems,
    const std::vector<std::unique_ptr<GoldenNode>>& nodes) {
  const auto m = static_cast<int64_t>(nodes.size());
  const json& star = step.at("star");
  std::vector<std::vector<float>> before;
  for (const auto& node : nodes) {
    before.push_back(node->parameters);
    node->decisions.together["star"] = {
        star.is_null() ? m : star.at("node").get<int64_t>()};
    node->decisions.asked.clear();
    node->decisions.asked_is_scripted = true;
    if (star.is_null()) continue;
    for (const json& j : star.at("asked")) {
      node->decisions.asked.push_back(NodeName(j.get<int64_t>()));
    }
  }
  if (!star.is_null()) {
    // One case asks fewer than the others.
    const auto self = star.at("node").get<int64_t>();
    nodes[self]->Handle(core::PlanChanged{KdPdflPlan(
        golden, self,
        std::max<int64_t>(1, static_cast<int64_t>(star.at("asked").size())))});
  }
  // The last star sends first.
  std::vector<size_t> order;
  for (size_t i = 0; i < nodes.size(); ++i) order.push_back(i);
  const json& deliver = step.at("deliver");
  if (!deliver.is_null()) {
    std::swap(order[0], order[deliver.at("from").get<size_t>()]);
  }
  const bool adopts = golden.at("params").at("adopt").get<bool>();
  for (const size_t i : order) {
    nodes[i]->Handle(core::StepBegins{});
    EXPECT_EQ(nodes[i]->decisions.wrong_counts, 0);
    core::Push push;
    const bool sends = adopts && !deliver.is_null() && i == deliver.at("from");
    ASSERT_EQ(nodes[i]->Take(&push), sends) << "round " << k << " node " << i;
    if (!sends) continue;
    EXPECT_EQ(push.peers, Named(deliver.at("to")));
    for (const NodeId& to : push.peers) {
      nodes[NodeIndex(to)]->Handle(
          core::PushArrived{NodeName(i), WholeModel(before[i], k)});
    }
  }
  if (!star.is_null()) PlayStar(star, k, before, problems, nodes);
  const State* want = golden.StateAfter(k);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    const json& batch = step.at("local").at(i);
    core::ComputeGradient compute;
    ASSERT_EQ(node.Take(&compute), !batch.is_null())
        << "round " << k << " node " << i;
    if (!batch.is_null()) node.Gradient(ReadBatch(batch));
    core::StepDone done;
    ASSERT_TRUE(node.Take(&done)) << "round " << k << " node " << i;
    if (want == nullptr) continue;
    ExpectRow(*want, "x", i, node.parameters);
    ExpectRow(*want, "collab", i, CollabRow(node, static_cast<int64_t>(i), m));
    if (!want->contains("star")) continue;
    if (star.is_null()) {
      EXPECT_TRUE(want->at("star").is_null()) << "round " << k;
    } else if (star.at("node") == i) {
      CheckStarState(want->at("star"), star.at("received"),
                     AsKdPdfl(node).last_star());
    }
  }
}

void RunKdPdfl(const Case& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  if (testing::Test::HasFatalFailure()) return;
  const json& params = golden.at("params");
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < problems.size(); ++i) {
    nodes.push_back(std::make_unique<GoldenNode>(
        "kd-pdfl",
        KdPdflPlan(golden, static_cast<int64_t>(i),
                   params.at("subset").get<int64_t>()),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
    const auto self = static_cast<int64_t>(i);
    EXPECT_EQ(
        Difference("collab0",
                   CollabRow(*nodes[i], self, golden.at("m").get<int64_t>()),
                   golden.at("collab0").at(i)),
        "");
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PlayKdPdflRound(golden, step, k, problems, nodes);
    if (testing::Test::HasFatalFailure()) return;
    ++k;
  }
}

// ----------------------------------------------------------------- DRACO ----

// Times in the script are rounded.
constexpr double kInstant = 1e-6;

enum class DracoTimer { kPeriod, kSend, kWindow };

// Which timer is which: one that is set at the start for a period, one for
// sending, and the other.
std::map<uint64_t, DracoTimer> LearnDracoTimers(
    const simports::Problem& problem) {
  core::NodePlan plan = MakePlan(
      "draco", 0,
      {{"P", 1.0}, {"send", std::string("every")}, {"send_every", 2.0}});
  plan.hubs = {plan.self};
  GoldenNode node("draco", std::move(plan), std::vector<float>(problem.n()),
                  problem, 1, 0);
  std::map<uint64_t, DracoTimer> timers;
  core::WakeAfter wake;
  while (node.Take(&wake)) {
    timers[wake.timer] = wake.delay == absl::Seconds(1) ? DracoTimer::kPeriod
                                                        : DracoTimer::kSend;
  }
  EXPECT_EQ(timers.size(), 2U);
  return timers;
}

// The nodes, their timers in the script's time, and what is on its way.
class DracoRun {
 public:
  explicit DracoRun(const Case& golden)
      : golden_(golden),
        params_(golden.at("params")),
        problems_(MakeProblems(golden.at("problem"))) {
    CheckProblems(golden, problems_);
    if (testing::Test::HasFatalFailure()) return;
    timers_ = LearnDracoTimers(*problems_.front());
    for (size_t i = 0; i < problems_.size(); ++i) AddNode(i);
  }

  void Play() {
    if (testing::Test::HasFatalFailure()) return;
    int64_t k = 0;
    for (const json& event : golden_.at("schedule")) {
      now_ = event.at("t").get<double>();
      PassTime();
      PlayEvent(event, k);
      if (testing::Test::HasFatalFailure()) return;
      if (const State* want = golden_.StateAfter(k)) {
        for (size_t i = 0; i < nodes_.size(); ++i) {
          ExpectRow(*want, "x", i, nodes_[i].node->parameters);
        }
      }
      ++k;
    }
  }

 private:
  struct Sent {
    std::vector<NodeId> to;
    std::vector<float> values;
    std::vector<double> scalars;
    int64_t round = 0;
    // By the script.
    size_t from = 0;
    double at = 0;
  };
  struct DracoNode {
    std::unique_ptr<GoldenNode> node;
    std::map<DracoTimer, std::pair<uint64_t, double>> timers;  // id and due
    std::vector<float> computes_at;
    std::vector<Sent> sent;  // asked for, not yet in the script
  };

  void AddNode(size_t i) {
    const json& psi = params_.at("psi");
    const json& send = params_.at("send");
    KnobValues knobs = {
        {"eta", params_.at("eta").get<double>()},
        {"B", params_.at("B").get<int64_t>()},
        {"gamma_max", params_.at("gamma_max").get<double>()},
        {"window", params_.at("window").get<double>()},
        {"psi", psi.is_null() ? int64_t{0} : psi.get<int64_t>()},
        {"P", params_.at("P").get<double>()},
        {"own_update", params_.at("own_update").get<bool>()}};
    if (send.is_number()) {
      knobs["send"] = std::string("every");
      knobs["send_every"] = send.get<double>();
    }
    const auto self = static_cast<int64_t>(i);
    core::NodePlan plan = MakePlan("draco", self, knobs);
    for (size_t j = 0; j < problems_.size(); ++j) {
      if (Weight(i, j) != 0) {
        plan.out_neighbours.push_back({NodeName(j), Weight(i, j)});
      }
      if (Weight(j, i) != 0) {
        plan.in_neighbours.push_back({NodeName(j), Weight(j, i)});
      }
    }
    for (const core::Neighbour& to : plan.out_neighbours) {
      // No plan says otherwise.
      EXPECT_NEAR(to.weight, 1.0 / plan.out_neighbours.size(), 1e-6)
          << "q of " << i << " to " << to.node.name()
          << ": core::Draco knows equal weights only";
    }
    for (const json& hub : params_.at("hub_order")) {
      plan.hubs.push_back(NodeName(hub.get<int64_t>()));
    }
    nodes_.emplace_back();
    nodes_[i].node = std::make_unique<GoldenNode>(
        "draco", std::move(plan),
        golden_.at("x0").at(i).get<std::vector<float>>(), *problems_[i], 1, 0);
    Collect(i);
  }

  // q_ij of the arc i -> j.
  double Weight(size_t i, size_t j) const {
    return params_.at("q").at(i).at(j).get<double>();
  }

  DracoTimer KindOf(uint64_t timer) const {
    const auto it = timers_.find(timer);
    return it == timers_.end() ? DracoTimer::kWindow : it->second;
  }

  // What the node has just asked for.
  void Collect(size_t i) {
    DracoNode& n = nodes_[i];
    core::WakeAfter wake;
    while (n.node->Take(&wake)) {
      n.timers[KindOf(wake.timer)] = {wake.timer,
                                      now_ + absl::ToDoubleSeconds(wake.delay)};
    }
    core::Push push;
    while (n.node->Take(&push)) {
      n.sent.push_back(
          {push.peers, n.node->TakePushed(), push.scalars, push.round});
    }
    core::ComputeGradient compute;
    if (n.node->Take(&compute)) {
      n.computes_at.assign(compute.at->begin(), compute.at->end());
    }
  }

  void Handle(size_t i, core::Event event) {
    nodes_[i].node->Handle(std::move(event));
    Collect(i);
  }

  void Fire(size_t i, DracoTimer kind) {
    const auto it = nodes_[i].timers.find(kind);
    ASSERT_NE(it, nodes_[i].timers.end()) << "node " << i << " at " << now_;
    const uint64_t timer = it->second.first;
    nodes_[i].timers.erase(it);
    Handle(i, core::TimerFired{timer});
  }

  // Periods begin.
  void PassTime() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto it = nodes_[i].timers.find(DracoTimer::kPeriod);
      if (it != nodes_[i].timers.end() &&
          it->second.second <= now_ + kInstant) {
        Fire(i, DracoTimer::kPeriod);
      }
    }
  }

  Sent TakeSent(size_t i) {
    Sent sent;
    EXPECT_EQ(nodes_[i].sent.size(), 1U) << "node " << i << " at " << now_;
    if (nodes_[i].sent.empty()) return sent;
    sent = std::move(nodes_[i].sent.front());
    nodes_[i].sent.clear();
    return sent;
  }

  core::RemoteModel Arriving(const Sent& sent, double age) {
    core::RemoteModel model = WholeModel(sent.values, sent.round);
    model.scalars = sent.scalars;
    model.age = absl::Seconds(age);
    return model;
  }

  void PlayEvent(const json& event, int64_t k) {
    const std::string type = event.at("type");
    if (type == "compute_start") {
      const auto i = event.at("node").get<size_t>();
      Handle(i, core::StepBegins{});
      EXPECT_EQ(nodes_[i].computes_at, nodes_[i].node->parameters);
    } else if (type == "compute_done") {
      const auto i = event.at("node").get<size_t>();
      for (const json& batch : event.at("batches")) {
        const std::vector<float> at = std::exchange(nodes_[i].computes_at, {});
        ASSERT_FALSE(at.empty()) << "event " << k;
        nodes_[i].node->GradientAt(at, ReadBatch(batch));
        Collect(i);
      }
      core::StepDone done;
      ASSERT_TRUE(nodes_[i].node->Take(&done)) << "event " << k;
    } else if (type == "send") {
      const auto i = event.at("node").get<size_t>();
      if (params_.at("send").is_number()) {
        Fire(i, DracoTimer::kSend);
      }
      Sent sent = TakeSent(i);
      EXPECT_EQ(sent.to, Named(event.at("to"))) << "event " << k;
      sent.from = i;
      sent.at = now_;
      deltas_[event.at("delta").get<int64_t>()] = std::move(sent);
    } else if (type == "arrive") {
      PlayArrival(event, k);
    } else if (type == "window_close") {
      const auto i = event.at("node").get<size_t>();
      EXPECT_NEAR(nodes_[i].timers[DracoTimer::kWindow].second, now_, kInstant);
      Fire(i, DracoTimer::kWindow);
    } else if (type == "unify_send") {
      unifications_[event.at("id").get<int64_t>()] =
          TakeSent(event.at("hub").get<size_t>());
    } else if (type == "unify_arrive") {
      const auto i = event.at("node").get<size_t>();
      const auto id = event.at("id").get<int64_t>();
      ASSERT_EQ(unifications_.count(id), 1U) << "event " << k;
      const Sent& sent = unifications_[id];
      // By way of a neighbour; the script does not say which.
      for (size_t j = 0; j < nodes_.size(); ++j) {
        if (Weight(j, i) == 0) continue;
        Handle(i, core::PushArrived{NodeName(j), Arriving(sent, 0)});
        break;
      }
      for (const Sent& passed : std::exchange(nodes_[i].sent, {})) {
        EXPECT_EQ(passed.scalars, sent.scalars);
        EXPECT_EQ(passed.values, nodes_[i].node->parameters);
      }
    } else {
      FAIL() << "event " << k << " is a " << type;
    }
  }

  void PlayArrival(const json& event, int64_t k) {
    const auto i = event.at("to").get<size_t>();
    const std::map<std::string, std::string> counters = {
        {"accept", "accepted"},
        {"late", "dropped_late"},
        {"cap", "dropped_full"}};
    auto before = nodes_[i].node->algorithm().Gauges();
    const auto delta = event.at("delta").get<int64_t>();
    ASSERT_EQ(deltas_.count(delta), 1U) << "event " << k;
    const Sent& sent = deltas_[delta];
    EXPECT_EQ(sent.from, event.at("from").get<size_t>()) << "event " << k;
    EXPECT_NEAR(sent.at, event.at("sent").get<double>(), kInstant)
        << "event " << k;
    Handle(i, core::PushArrived{
                  NodeName(event.at("from").get<int64_t>()),
                  Arriving(sent, now_ - event.at("sent").get<double>())});
    auto after = nodes_[i].node->algorithm().Gauges();
    for (const auto& [result, gauge] : counters) {
      EXPECT_EQ(after[gauge] - before[gauge], event.at("result") == result)
          << "event " << k << " " << gauge;
    }
  }

  const Case& golden_;
  const json& params_;
  const std::vector<std::unique_ptr<simports::Problem>> problems_;
  std::vector<DracoNode> nodes_;
  double now_ = 0;
  std::map<uint64_t, DracoTimer> timers_;
  std::map<int64_t, Sent> deltas_;
  std::map<int64_t, Sent> unifications_;
};

// ------------------------------------------------------------------ all ----

class Golden : public testing::TestWithParam<std::string> {};

void Play(const Case& golden) {
  const std::string algorithm = golden.algorithm();
  CheckMatrices(golden);
  if (algorithm == "pame") return RunPame(golden);
  if (algorithm == "epidemic") return RunEpidemic(golden);
  if (algorithm == "fedmid") return RunFedmid(golden);
  if (algorithm == "kd-pdfl") return RunKdPdfl(golden);
  if (algorithm == "draco") return DracoRun(golden).Play();
  for (const char* clocked : {"async-dsgd", "barrier-dsgd", "sync-dsgd"}) {
    if (algorithm == clocked) return RunClocked(golden);
  }
  for (const char* rounds :
       {"d-psgd", "decefl", "dfedavgm", "dfedsam", "fedavg"}) {
    if (algorithm == rounds) return RunRounds(golden);
  }
  const auto info = core::FindAlgorithm(algorithm);
  ASSERT_TRUE(info.ok()) << info.status();
  if ((*info)->gives_mass) return RunMass(golden);
  FAIL() << "no driver for " << algorithm;
}

TEST_P(Golden, Reproduces) {
  const Case golden(GetParam());
  if (!golden.contains("schedule")) return CheckTables(golden);
  if (const State* start = golden.StateAfter(-1)) {
    for (size_t i = 0; i < golden.at("x0").size(); ++i) {
      const json& x0 = golden.at("x0").at(i);
      if (!x0.is_null())
        ExpectRow(*start, "x", i, x0.get<std::vector<float>>());
    }
  }
  Play(golden);
  // After a failure the rest has not been reached.
  if (!HasFailure()) {
    EXPECT_EQ(golden.Uncompared(), std::vector<std::string>());
  }
}

// Only letters, digits and underscores, and no two alike.
std::string CaseName(const testing::TestParamInfo<std::string>& info) {
  const std::string stem = std::filesystem::path(info.param).stem().string();
  std::string name = stem;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name == stem ? name : absl::StrCat(name, "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(Vectors, Golden, testing::ValuesIn(CaseFiles()),
                         CaseName);

TEST(GoldenVectors, AreThere) { EXPECT_GE(CaseFiles().size(), 1U); }

}  // namespace
}  // namespace dfl::golden

// Every golden vector of an algorithm in the catalogue, driven through the core
// objects. DFL_GOLDEN_DIR=folder takes other cases of the same format.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/flat_vector.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_network.h"
#include "tests/golden/mass_runs.h"

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

// The problem itself, before the algorithm.
void CheckProblems(
    const json& golden,
    const std::vector<std::unique_ptr<core::Problem>>& problems) {
  const json& check = golden.at("check_x0");
  for (size_t i = 0; i < problems.size(); ++i) {
    if (golden.at("x0").at(i).is_null()) continue;
    const auto x0 = golden.at("x0").at(i).get<std::vector<float>>();
    EXPECT_TRUE(Close(problems[i]->Loss(x0), check.at("loss").at(i)));
    std::vector<float> gradient(x0.size());
    problems[i]->Gradient(x0, {}, absl::MakeSpan(gradient));
    EXPECT_EQ(Difference("gradient", gradient, check.at("grad").at(i)), "");
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

// How many neighbours are asked beyond those needed, as the script has it.
int64_t ExtraAsked(const json& golden, int64_t node) {
  for (const json& step : golden.at("schedule")) {
    const json& pull = step.at("pull").at(node);
    if (!pull.is_null()) {
      return static_cast<int64_t>(pull.at("asked").size()) -
             pull.at("need").get<int64_t>();
    }
  }
  return 0;
}

std::vector<std::unique_ptr<GoldenNode>> MakePameNodes(
    const json& golden,
    const std::vector<std::unique_ptr<core::Problem>>& problems) {
  const json& params = golden.at("params");
  std::vector<std::vector<int64_t>> edges(golden.at("m").get<int64_t>());
  for (const json& edge : golden.at("graph").at("edges")) {
    edges[edge[0].get<int64_t>()].push_back(edge[1].get<int64_t>());
    edges[edge[1].get<int64_t>()].push_back(edge[0].get<int64_t>());
  }
  std::vector<std::unique_ptr<GoldenNode>> nodes;
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto kappa = params.at("kappa").at(i).get<int64_t>();
    core::NodePlan plan =
        MakePlan("pame", i,
                 {{"nu", params.at("nu").at(i).get<double>()},
                  {"p", params.at("p").at(i).get<double>()},
                  {"sigma0", params.at("sigma0").at(i).get<double>()},
                  {"gamma", params.at("gamma").at(i).get<double>()},
                  {"kappa", core::IntRange{kappa, kappa}},
                  {"lookahead", int64_t{0}},
                  {"extra_asked", ExtraAsked(golden, i)}});
    std::sort(edges[i].begin(), edges[i].end());
    for (const int64_t j : edges[i]) {
      plan.neighbours.push_back({NodeName(j), 0});
    }
    nodes.push_back(std::make_unique<GoldenNode>(
        "pame", std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0));
  }
  return nodes;
}

// Everybody begins step k; who exchanges asks, and every answer is taken from
// its sender's model before the step.
void PameExchange(const json& golden, const json& step,
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

void RunPame(const json& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  const auto nodes = MakePameNodes(golden, problems);
  for (size_t i = 0; i < nodes.size(); ++i) {
    EXPECT_EQ(nodes[i]->algorithm().Gauges().at("m"),
              golden.at("params").at("m_init").at(i).get<double>());
  }
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
    PameExchange(golden, step, nodes);
    if (testing::Test::HasFatalFailure()) return;
    const json* want = StateAfter(golden, k);
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
      EXPECT_EQ(Difference("x", node.parameters, want->at("x").at(i)), "")
          << "step " << k << " node " << i;
      EXPECT_EQ(Difference("vbar", vbar, want->at("vbar").at(i)), "")
          << "step " << k << " node " << i;
      const auto gauges = node.algorithm().Gauges();
      EXPECT_TRUE(Close(gauges.at("sigma"), want->at("sigma").at(i)));
      EXPECT_EQ(gauges.at("m"), want->at("m").at(i).get<double>());
    }
    ++k;
  }
}

// --------------------------------------------------- synchronous rounds ----

// The knobs of a run, by our names.
KnobValues RoundKnobs(const json& golden) {
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
  pushes.push_back({from, push.peers, node.parameters});
}

// A node that has all it needs when it pushes mixes an instant later.
void PassInstant(GoldenNode& node) {
  core::WakeAfter wake;
  while (node.Take(&wake)) node.Handle(core::TimerFired{wake.timer});
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
  const json& golden;
  std::string algorithm;
  std::vector<std::unique_ptr<core::Problem>> problems;
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
    core::NodePlan plan = MakePlan(run.algorithm, i, run.knobs);
    SetRow(weights.at(i), i, &plan);
    plan.sample_weight = run.SampleWeight(i, members);
    run.nodes[i]->Handle(core::PlanChanged{std::move(plan)});
  }
  // Models are pushed before training or after it.
  std::vector<Pushed> pushes;
  for (const int64_t i : members) {
    run.nodes[i]->Handle(core::StepBegins{});
    TakePush(*run.nodes[i], i, k, pushes);
  }
  // A step of dfedsam takes two gradients on one batch.
  const int gradients = run.algorithm == "dfedsam" ? 2 : 1;
  const json* want = StateAfter(run.golden, k);
  for (const int64_t i : members) {
    GoldenNode& node = *run.nodes[i];
    const json batches = step.contains("local") ? step.at("local").at(i)
                                                : json{step.at("batch").at(i)};
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
      if (want == nullptr || !want->contains(trained)) continue;
      EXPECT_EQ(Difference(trained, node.parameters, want->at(trained).at(i)),
                "");
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
    PassInstant(*run.nodes[i]);
    core::StepDone done;
    ASSERT_TRUE(run.nodes[i]->Take(&done)) << "round " << k << " node " << i;
    if (want == nullptr) continue;
    EXPECT_EQ(Difference("x", run.nodes[i]->parameters, want->at("x").at(i)),
              "")
        << "round " << k << " node " << i;
  }
}

void RunRounds(const json& golden) {
  RoundRun run{golden,
               golden.at("algorithm"),
               MakeProblems(golden.at("problem")),
               RoundKnobs(golden),
               {}};
  CheckProblems(golden, run.problems);
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

// -------------------------------------------------------------- epidemic ----

void PlayEpidemicRound(const json& golden, const json& step, int64_t k,
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
    EXPECT_EQ(push.to.size(), step.at("sends").at(push.from).size());
    for (const NodeId& to : push.to) {
      nodes[NodeIndex(to)]->Handle(
          core::PushArrived{NodeName(push.from), WholeModel(push.model, k)});
    }
  }
  const json* want = StateAfter(golden, k);
  for (size_t i = 0; i < nodes.size(); ++i) {
    GoldenNode& node = *nodes[i];
    PassInstant(node);
    core::ComputeGradient compute;
    ASSERT_TRUE(node.Take(&compute)) << "round " << k << " node " << i;
    const std::vector<float> average = node.parameters;
    node.Gradient(ReadBatch(step.at("batch").at(i)));
    core::StepDone done;
    ASSERT_TRUE(node.Take(&done));
    if (want == nullptr) continue;
    EXPECT_EQ(Difference("avg", average, want->at("avg").at(i)), "")
        << "round " << k << " node " << i;
    EXPECT_EQ(Difference("x", node.parameters, want->at("x").at(i)), "")
        << "round " << k << " node " << i;
  }
}

void RunEpidemic(const json& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
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
    const json& golden,
    const std::vector<std::unique_ptr<core::Problem>>& problems) {
  const std::string algorithm = golden.at("algorithm");
  const json& params = golden.at("params");
  std::vector<ClockedNode> nodes(problems.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    KnobValues knobs = {{"eta", params.at("eta").get<double>()},
                        {"xi", params.at("xi").get<double>()}};
    if (algorithm != "sync-dsgd") {
      knobs["measure_q"] = false;
      knobs["q"] = params.at("q").at(i).get<double>();
    }
    core::NodePlan plan = MakePlan(algorithm, static_cast<int64_t>(i), knobs);
    plan.largest_q =
        *std::max_element(params.at("q").begin(), params.at("q").end());
    for (size_t j = 0; j < nodes.size(); ++j) {
      if (j != i) plan.neighbours.push_back({NodeName(j), 0});
    }
    nodes[i].node = std::make_unique<GoldenNode>(
        algorithm, std::move(plan),
        golden.at("x0").at(i).get<std::vector<float>>(), *problems[i], 1, 0);
    EXPECT_TRUE(Close(nodes[i].node->algorithm().Gauges().at("step_size"),
                      params.at("eta_i").at(i)));
  }
  return nodes;
}

// The links of this round, and the computing until the barrier.
void PlayComputing(const json& golden, const json& step, int64_t k, size_t i,
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
  const json* want = StateAfter(golden, k);
  if (want != nullptr) {
    EXPECT_EQ(Difference("x_half", node.parameters, want->at("x_half").at(i)),
              "")
        << "round " << k << " node " << i;
  }
  core::Push push;
  ASSERT_EQ(node.Take(&push), !linked.empty());
  if (linked.empty()) return;
  EXPECT_EQ(push.peers.size(), linked.size());
  pushes.push_back({static_cast<int64_t>(i), push.peers, node.parameters});
  said.push_back(std::move(push));
}

void RunClocked(const json& golden) {
  const auto problems = MakeProblems(golden.at("problem"));
  CheckProblems(golden, problems);
  std::vector<ClockedNode> nodes = MakeClockedNodes(golden, problems);
  int64_t k = 0;
  for (const json& step : golden.at("schedule")) {
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
    const json* want = StateAfter(golden, k);
    for (size_t i = 0; i < nodes.size(); ++i) {
      GoldenNode& node = *nodes[i].node;
      PassInstant(node);
      core::StepDone done;
      ASSERT_TRUE(node.Take(&done)) << "round " << k << " node " << i;
      if (want == nullptr) continue;
      EXPECT_EQ(Difference("x", node.parameters, want->at("x").at(i)), "")
          << "round " << k << " node " << i;
    }
    ++k;
  }
}

// ------------------------------------------------- aggregation by itself ----

void CheckPartialMean(const json& table) {
  std::vector<std::unique_ptr<core::RemoteVector>> owned;
  std::vector<core::RemoteVector*> messages;
  for (const json& message : table.at("messages")) {
    owned.push_back(std::make_unique<core::PlainRemoteVector>(
        static_cast<int64_t>(table.at("own").size()),
        message.at("coords").get<std::vector<int64_t>>(),
        message.at("values").get<std::vector<float>>()));
    messages.push_back(owned.back().get());
  }
  auto own = table.at("own").get<std::vector<float>>();
  core::PartialMean(messages, absl::MakeSpan(own));
  EXPECT_EQ(Difference("result", own, table.at("result")), "");
}

// ------------------------------------------------------------------ all ----

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Reproduces) {
  const json golden = LoadCase(GetParam());
  const std::string algorithm = golden.value("algorithm", "");
  if (algorithm == "pme") {
    if (!golden.contains("tables")) return CheckPartialMean(golden);
    for (const json& table : golden.at("tables")) CheckPartialMean(table);
    return;
  }
  if (!golden.contains("schedule")) {
    GTEST_SKIP() << "a table, checked by core_test";
  }
  if (!core::FindAlgorithm(algorithm).ok()) {
    GTEST_SKIP() << algorithm << " is not in the catalogue yet";
  }
  if (algorithm == "pame") return RunPame(golden);
  if (algorithm == "epidemic") return RunEpidemic(golden);
  for (const char* clocked : {"async-dsgd", "barrier-dsgd", "sync-dsgd"}) {
    if (algorithm == clocked) return RunClocked(golden);
  }
  for (const char* rounds :
       {"d-psgd", "decefl", "dfedavgm", "dfedsam", "fedavg"}) {
    if (algorithm == rounds) return RunRounds(golden);
  }
  if ((*core::FindAlgorithm(algorithm))->gives_mass) return RunMass(golden);
  FAIL() << "no driver for " << algorithm;
}

std::string CaseName(const testing::TestParamInfo<std::string>& info) {
  return std::filesystem::path(info.param).stem().string();
}

INSTANTIATE_TEST_SUITE_P(Vectors, Golden, testing::ValuesIn(CaseFiles()),
                         CaseName);

TEST(GoldenVectors, AreThere) { EXPECT_GE(CaseFiles().size(), 1U); }

}  // namespace
}  // namespace dfl::golden

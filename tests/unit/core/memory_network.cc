#include "tests/unit/core/memory_network.h"

#include <algorithm>
#include <variant>

#include "absl/strings/str_cat.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "daemon/core/algorithms/catalogue.h"
#include "tests/support/recorded_actions.h"

namespace dfl::core {
namespace {

constexpr double kGradient = 0.02;  // s
constexpr double kLateGradient = 0.08;
constexpr double kLateParcel = 1.6;
constexpr double kLateAnswer = 0.33;
constexpr int64_t kLateFrom = 4;  // rounds
constexpr double kDeadline = 0.2;
constexpr int64_t kBatch = 3;
constexpr size_t kBuffers = 2;

simports::SoftmaxSpec Data() {
  simports::SoftmaxSpec spec;
  spec.nodes = MemoryNetwork::kNodes;
  spec.features = 3;
  spec.classes = 3;
  spec.rows_per_node = 12;
  spec.test_rows = 1;
  return spec;
}

// Short periods, and chance where there can be: of the knobs that `info` has.
KnobValues KnobsOf(const AlgorithmInfo& info) {
  const KnobValues wanted = {{"T0", int64_t{2}},
                             {"T_ex", int64_t{3}},
                             {"kappa", IntRange{3, 3}},
                             {"K", int64_t{2}},
                             {"B", int64_t{2}},
                             {"P", 0.3},
                             {"gamma_max", 0.06},
                             {"fine_tune_from", int64_t{12}},
                             {"p_hat", 0.7}};
  KnobValues values;
  for (const KnobSpec& knob : info.knobs) {
    const auto it = wanted.find(knob.name);
    if (it != wanted.end()) values.insert(*it);
  }
  return values;
}

RunPlan PlanOf(const AlgorithmInfo& info) {
  RunPlan plan;
  plan.seed = 7;
  for (size_t i = 0; i < MemoryNetwork::kNodes; ++i) {
    plan.members.push_back(MemberSpec{NodeId(absl::StrCat("node-", i)), 12});
  }
  plan.algorithm.name = info.name;
  plan.algorithm.knobs = KnobsOf(info);
  plan.topology.kind = info.star_graph ? "star" : "complete";
  plan.codec.format.coordinates = Coordinates::kDense;
  plan.deadline.exchange = absl::Seconds(kDeadline);
  return plan;
}

RemoteModel Remote(absl::Span<const float> values,
                   const std::vector<float>& buffers, int64_t step,
                   std::vector<double> scalars) {
  RemoteModel model;
  model.parameters = std::make_unique<PlainRemoteVector>(
      std::vector<float>(values.begin(), values.end()));
  model.buffers = buffers;
  model.step = step;
  model.scalars = std::move(scalars);
  return model;
}

}  // namespace

struct MemoryNetwork::Node {
  Node(NodePlan of, int64_t n)
      : plan(std::move(of)),
        decisions(DeriveSeed(plan.seed, plan.self.name())),
        parameters(n),
        gradient(n),
        buffers(kBuffers) {}

  NodePlan plan;
  SeededDecisions decisions;
  std::vector<float> parameters;
  std::vector<float> gradient;
  std::vector<float> buffers;
  std::unique_ptr<Algorithm> algorithm;
  bool at_boundary = true;
  int64_t gradients = 0;
  std::map<uint64_t, uint64_t> timers;  // of those that are set, a number
  std::vector<AskArrived> asks;         // until the parameters are settled
};

MemoryNetwork::MemoryNetwork(const AlgorithmInfo& info)
    : catalogue_({info}), data_(simports::SoftmaxExample(Data())) {
  auto plans = DeriveNodePlans(PlanOf(info), 0, catalogue_);
  DFL_CHECK(plans.ok());
  for (size_t i = 0; i < kNodes; ++i) {
    index_[(*plans)[i].self] = i;
    nodes_.push_back(
        std::make_unique<Node>(std::move((*plans)[i]), data_.nodes[i]->n()));
    nodes_[i]->buffers[0] = static_cast<float>(i);
    nodes_[i]->algorithm = MakeFresh(i);
    Handle(i, Started{0});
  }
  for (size_t i = 0; i < kNodes; ++i) {
    for (size_t j = 0; j < kNodes; ++j) {
      if (j != i) Handle(i, PeerUp{name(j)});
    }
  }
}

MemoryNetwork::~MemoryNetwork() = default;

Algorithm& MemoryNetwork::algorithm(size_t i) { return *nodes_[i]->algorithm; }

const std::vector<float>& MemoryNetwork::parameters(size_t i) const {
  return nodes_[i]->parameters;
}

const std::vector<float>& MemoryNetwork::buffers(size_t i) const {
  return nodes_[i]->buffers;
}

NodeId MemoryNetwork::name(size_t i) const { return nodes_[i]->plan.self; }

std::unique_ptr<Algorithm> MemoryNetwork::MakeFresh(size_t i) {
  Node& node = *nodes_[i];
  AlgorithmContext context;
  context.plan = node.plan;
  context.vectors =
      NodeVectors{absl::MakeSpan(node.parameters),
                  absl::MakeSpan(node.gradient), absl::MakeSpan(node.buffers)};
  context.batches_per_pass = 2;
  context.train_rows = data_.nodes[i]->rows();
  return CreateAlgorithm(*node.plan.algorithm, std::move(context),
                         node.decisions);
}

void MemoryNetwork::Replace(size_t i, std::unique_ptr<Algorithm> algorithm) {
  nodes_[i]->algorithm = std::move(algorithm);
  for (size_t j = 0; j < kNodes; ++j) {
    if (j != i) Handle(i, PeerUp{name(j)});
  }
}

// -------------------------------------------------------------------- time ----

void MemoryNetwork::After(double seconds, std::function<void()> happens) {
  queue_[{now_ + seconds, ++order_}] = std::move(happens);
}

void MemoryNetwork::HandleAfter(double seconds, size_t node, Event event) {
  auto shared = std::make_shared<Event>(std::move(event));
  After(seconds, [this, node, shared] { Handle(node, std::move(*shared)); });
}

void MemoryNetwork::HappenNext() {
  const auto first = queue_.begin();
  now_ = first->first.first;
  const std::function<void()> happens = std::move(first->second);
  queue_.erase(first);
  happens();
}

void MemoryNetwork::RunToStep(int64_t steps) {
  goal_ = steps;
  for (size_t i = 0; i < kNodes; ++i) MayBegin(i);
  const auto done = [](const std::unique_ptr<Node>& node) {
    return node->at_boundary;
  };
  while (!std::all_of(nodes_.begin(), nodes_.end(), done)) {
    DFL_CHECK(!queue_.empty());
    HappenNext();
  }
}

void MemoryNetwork::Idle(double seconds) {
  const double until = now_ + seconds;
  while (!queue_.empty() && queue_.begin()->first.first <= until) HappenNext();
  now_ = until;
}

void MemoryNetwork::MayBegin(size_t node) {
  Node& self = *nodes_[node];
  if (!self.at_boundary || self.algorithm->step() >= goal_) return;
  self.at_boundary = false;
  HandleAfter(0, node, StepBegins{});
}

void MemoryNetwork::Handle(size_t node, Event event) {
  ActionsCarriedOut actions([&](Action action) {
    std::visit([&](auto& a) { Do(node, std::move(a)); }, action);
  });
  nodes_[node]->algorithm->Handle(std::move(event), actions);
  ServeAsks(node);
}

void MemoryNetwork::ServeAsks(size_t node) {
  Node& self = *nodes_[node];
  if (!self.algorithm->parameters_settled()) return;
  for (const AskArrived& ask : std::exchange(self.asks, {})) Handle(node, ask);
}

double MemoryNetwork::Latency(size_t from, size_t to) const {
  return 0.001 * static_cast<double>(1 + from + 2 * to);
}

// ----------------------------------------------------------------- actions ----

// At the model of now; every fifth takes long, at each node another.
void MemoryNetwork::Do(size_t node, ComputeGradient action) {
  Node& self = *nodes_[node];
  std::vector<float> model = self.parameters;
  if (action.at) model.assign(action.at->begin(), action.at->end());
  if (!action.same_batch) ++self.gradients;
  std::vector<int64_t> batch;
  for (int64_t row = 0; row < kBatch; ++row) {
    batch.push_back((self.gradients * kBatch + row) %
                    data_.nodes[node]->rows());
  }
  const bool late = self.gradients % 5 == static_cast<int64_t>(node);
  After(late ? kLateGradient : kGradient, [this, node, model, batch] {
    Node& at = *nodes_[node];
    const double loss =
        data_.nodes[node]->Gradient(model, batch, absl::MakeSpan(at.gradient));
    at.buffers[1] += static_cast<float>(loss);
    Handle(node, GradientReady{loss, kBatch});
  });
}

void MemoryNetwork::Do(size_t node, Ask action) {
  for (const NodeId& peer : action.peers) {
    const size_t to = IndexOf(peer);
    After(Latency(node, to), [this, node, to, ask = action.ask] {
      nodes_[to]->asks.push_back(AskArrived{name(node), ask});
      ServeAsks(to);
    });
  }
}

void MemoryNetwork::Do(size_t node, Answer action) {
  const Node& self = *nodes_[node];
  const auto n = static_cast<int64_t>(self.parameters.size());
  Rng rng(action.seed);
  std::vector<int64_t> coordinates;
  std::vector<float> values;
  for (int64_t l = 0; l < n; ++l) {
    if (action.rate < 1 && rng.Uniform() >= action.rate) continue;
    coordinates.push_back(l);
    values.push_back(self.parameters[l]);
  }
  AnswerArrived answer{name(node), action.ask, {}};
  answer.model.parameters = std::make_unique<PlainRemoteVector>(
      n, std::move(coordinates), std::move(values));
  answer.model.buffers = self.buffers;
  answer.model.step = self.algorithm->step();
  const size_t to = IndexOf(action.to);
  HandleAfter(Latency(node, to), to, std::move(answer));
}

void MemoryNetwork::Do(size_t node, Push action) {
  const Node& self = *nodes_[node];
  const absl::Span<const float> values =
      action.values.empty() ? absl::MakeConstSpan(self.parameters)
                            : action.values;
  for (const NodeId& peer : action.peers) {
    const size_t to = IndexOf(peer);
    HandleAfter(Latency(node, to), to,
                PushArrived{name(node), Remote(values, self.buffers,
                                               action.round, action.scalars)});
  }
}

void MemoryNetwork::Do(size_t node, Give action) {
  const size_t to = IndexOf(action.to);
  double latency = Latency(node, to);
  if (action.round >= kLateFrom) {
    if (node == kSlowGiver && to == kSlowTaker) latency = kLateParcel;
    if (node == kSlowTaker && to == kSlowGiver) latency = kLateAnswer;
  }
  After(latency, [this, node, to, action] {
    MassArrived mass{name(node), action.sequence,
                     Remote(*action.mass, {}, action.round, action.scalars),
                     action.steps != nullptr};
    Handle(to, std::move(mass));
    HandleAfter(Latency(to, node), node,
                Delivered{name(to), action.sequence,
                          nodes_[to]->algorithm->MassTaken(name(node))});
  });
}

void MemoryNetwork::Do(size_t node, Skip action) {
  for (const NodeId& peer : action.peers) {
    const size_t to = IndexOf(peer);
    HandleAfter(Latency(node, to), to, Skipped{name(node), action.round});
  }
}

void MemoryNetwork::Do(size_t node, WakeAfter action) {
  const uint64_t number = ++order_;
  nodes_[node]->timers[action.timer] = number;
  After(absl::ToDoubleSeconds(action.delay),
        [this, node, timer = action.timer, number] {
          const auto it = nodes_[node]->timers.find(timer);
          if (it == nodes_[node]->timers.end() || it->second != number) return;
          nodes_[node]->timers.erase(it);
          Handle(node, TimerFired{timer});
        });
}

void MemoryNetwork::Do(size_t node, CancelTimer action) {
  nodes_[node]->timers.erase(action.timer);
}

void MemoryNetwork::Do(size_t node, StepDone /*action*/) {
  nodes_[node]->at_boundary = true;
  MayBegin(node);
}

void MemoryNetwork::Do(size_t node, Predict action) {
  const simports::Softmax& problem = *data_.nodes[node];
  Predicted predicted;
  predicted.rows = kBatch;
  const auto predict = [&](absl::Span<const float> model) {
    std::vector<double> all;
    for (int64_t row = 0; row < kBatch; ++row) {
      std::vector<double> one(problem.classes());
      problem.Predict(model, row, absl::MakeSpan(one));
      all.insert(all.end(), one.begin(), one.end());
    }
    predicted.probabilities.push_back(std::move(all));
  };
  predict(nodes_[node]->parameters);
  for (const ModelValues& model : *action.models) predict(model.parameters);
  HandleAfter(kGradient, node, std::move(predicted));
}

}  // namespace dfl::core

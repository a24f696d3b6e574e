#include "tests/support/test_network.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "absl/time/time.h"
#include "daemon/base/check.h"
#include "daemon/base/rng.h"
#include "tests/support/recorded_actions.h"

namespace dfl::core {
namespace {

RemoteModel Remote(std::unique_ptr<RemoteVector> parameters,
                   std::vector<float> buffers, int64_t step,
                   std::vector<double> scalars) {
  RemoteModel model;
  model.parameters = std::move(parameters);
  model.buffers = std::move(buffers);
  model.step = step;
  model.scalars = std::move(scalars);
  return model;
}

std::vector<int64_t> FirstOf(int64_t n) {
  std::vector<int64_t> places(n);
  std::iota(places.begin(), places.end(), int64_t{0});
  return places;
}

}  // namespace

std::vector<int64_t> NamedCoordinates(uint64_t seed, int64_t n, int64_t count) {
  std::vector<int64_t> places = FirstOf(n);
  Rng rng(seed);
  rng.Shuffle(absl::MakeSpan(places));
  places.resize(count);
  std::sort(places.begin(), places.end());
  return places;
}

TestNetwork::TestNetwork(std::vector<NodeId> names)
    : names_(std::move(names)), nodes_(names_.size()) {
  for (size_t i = 0; i < names_.size(); ++i) places_[names_[i]] = i;
}

void TestNetwork::Add(size_t i, TestNode node) {
  nodes_[i] = std::make_unique<TestNode>(std::move(node));
  nodes_[i]->gradient.assign(nodes_[i]->parameters.size(), 0.0F);
  nodes_[i]->algorithm = MakeAlgorithm(i);
}

std::unique_ptr<Algorithm> TestNetwork::MakeAlgorithm(size_t i) {
  TestNode& node = *nodes_[i];
  AlgorithmContext context;
  context.plan = node.plan;
  context.vectors =
      NodeVectors{absl::MakeSpan(node.parameters),
                  absl::MakeSpan(node.gradient), absl::MakeSpan(node.buffers)};
  context.batches_per_pass = node.batches_per_pass;
  if (node.problem != nullptr) context.train_rows = node.problem->rows();
  context.mass_code = node.mass_code;
  return CreateAlgorithm(*node.plan.algorithm, std::move(context),
                         *node.decisions);
}

void TestNetwork::LinkUp(size_t i) {
  for (size_t j = 0; j < size(); ++j) {
    if (j != i) Handle(i, PeerUp{names_[j]});
  }
}

// ------------------------------------------------------------------- time ----

void TestNetwork::After(double seconds, std::function<void()> happens) {
  queue_[{now_ + seconds, ++last_number_}] = std::move(happens);
}

bool TestNetwork::HappenNext() {
  if (queue_.empty()) return false;
  const auto first = queue_.begin();
  now_ = first->first.first;
  const std::function<void()> happens = std::move(first->second);
  queue_.erase(first);
  happens();
  return true;
}

void TestNetwork::Run(double seconds) {
  const double until = now_ + seconds;
  while (!queue_.empty() && queue_.begin()->first.first <= until) HappenNext();
  now_ = until;
}

void TestNetwork::RunAll() {
  while (HappenNext()) continue;
}

// ----------------------------------------------------------------- events ----

void TestNetwork::HandleAfter(double seconds, size_t i, Event event) {
  auto shared = std::make_shared<Event>(std::move(event));
  After(seconds, [this, i, shared] { Handle(i, std::move(*shared)); });
}

void TestNetwork::Begin(size_t i) {
  nodes_[i]->at_boundary = false;
  HandleAfter(0, i, StepBegins{});
}

void TestNetwork::Handle(size_t i, Event event) {
  TestNode& node = *nodes_[i];
  OnEvent(i, event);
  if (std::holds_alternative<StepBegins>(event)) node.at_boundary = false;
  const bool in_step = !node.at_boundary;
  ActionsCarriedOut actions([&](Action action) {
    OnAction(i, action);
    std::visit([&](auto& a) { Do(i, std::move(a)); }, action);
  });
  node.algorithm->Handle(std::move(event), actions);
  if (in_step && node.at_boundary) OnBoundary(i);
  ServeAsks(i);
}

void TestNetwork::ServeAsks(size_t i) {
  TestNode& node = *nodes_[i];
  if (!node.algorithm->parameters_settled()) return;
  for (AskArrived& ask : std::exchange(node.asks, {})) {
    Handle(i, std::move(ask));
  }
}

void TestNetwork::Send(size_t from, size_t to, Event message) {
  const std::optional<double> latency = Latency(from, to, message);
  if (!latency) return;
  auto shared = std::make_shared<Event>(std::move(message));
  After(*latency, [this, to, shared] { Arrive(to, std::move(*shared)); });
}

void TestNetwork::Arrive(size_t to, Event message) {
  TestNode& node = *nodes_[to];
  if (auto* ask = std::get_if<AskArrived>(&message)) {
    node.asks.push_back(std::move(*ask));
    if (!node.algorithm->parameters_settled()) ++asks_waited_;
    ServeAsks(to);
  } else if (const auto* mass = std::get_if<MassArrived>(&message)) {
    const NodeId giver = mass->from;
    const uint64_t sequence = mass->sequence;
    const size_t from = IndexOf(giver);
    Handle(to, std::move(message));
    const auto parcel = nodes_[from]->parcels.find(to);
    if (parcel != nodes_[from]->parcels.end() &&
        parcel->second.give.sequence == sequence) {
      parcel->second.taken = true;
    }
    Send(to, from,
         Delivered{names_[to], sequence, node.algorithm->MassTaken(giver)});
  } else if (const auto* delivered = std::get_if<Delivered>(&message)) {
    const auto parcel = node.parcels.find(IndexOf(delivered->to));
    // Else it is of a repeat.
    if (parcel != node.parcels.end() &&
        parcel->second.give.sequence == delivered->sequence) {
      node.parcels.erase(parcel);
      Handle(to, std::move(message));
    }
  } else {
    Handle(to, std::move(message));
  }
}

// -------------------------------------------------------------- computing ----

void TestNetwork::Do(size_t i, ComputeGradient action) {
  TestNode& node = *nodes_[i];
  DFL_CHECK(!node.computes_at.has_value());
  node.computes_at = node.parameters;
  if (action.at) node.computes_at->assign(action.at->begin(), action.at->end());
  if (!action.same_batch) node.batch = NextBatch(i);
  const std::optional<double> time = ComputeTime(i);
  if (time) After(*time, [this, i] { FinishGradient(i); });
}

void TestNetwork::FinishGradient(size_t i) {
  const auto model = std::exchange(nodes_[i]->computes_at, std::nullopt);
  DFL_CHECK(model.has_value());
  Handle(i, Gradient(i, *model, nodes_[i]->batch));
}

GradientReady TestNetwork::Gradient(size_t i, absl::Span<const float> model,
                                    const std::vector<int64_t>& batch) {
  TestNode& node = *nodes_[i];
  const double loss =
      node.problem->Gradient(model, batch, absl::MakeSpan(node.gradient));
  return {loss, static_cast<int64_t>(batch.size())};
}

void TestNetwork::Do(size_t i, const Predict& action) {
  const auto& problem =
      dynamic_cast<const simports::Softmax&>(*node(i).problem);
  std::vector<int64_t> batch = NextBatch(i);
  if (batch.empty()) batch = FirstOf(problem.rows());
  Predicted predicted;
  predicted.rows = static_cast<int64_t>(batch.size());
  const auto classes = static_cast<size_t>(problem.classes());
  const auto predict = [&](absl::Span<const float> model) {
    std::vector<double> p(batch.size() * classes);
    for (size_t row = 0; row < batch.size(); ++row) {
      problem.Predict(model, batch[row],
                      absl::MakeSpan(p).subspan(row * classes, classes));
    }
    predicted.probabilities.push_back(std::move(p));
  };
  predict(node(i).parameters);
  for (const ModelValues& model : *action.models) predict(model.parameters);
  HandleAfter(ComputeTime(i).value_or(0), i, std::move(predicted));
}

void TestNetwork::Do(size_t i, StepDone /*action*/) {
  nodes_[i]->at_boundary = true;
}

// --------------------------------------------------------------- messages ----

void TestNetwork::Do(size_t i, const Ask& action) {
  for (const NodeId& peer : action.peers) {
    Send(i, IndexOf(peer), AskArrived{names_[i], action.ask});
  }
}

std::vector<int64_t> TestNetwork::Coordinates(size_t from,
                                              const Answer& answer) {
  const auto n = static_cast<int64_t>(nodes_[from]->parameters.size());
  return NamedCoordinates(answer.seed, n, SentCoordinates(answer.rate, n));
}

void TestNetwork::Do(size_t i, const Answer& action) {
  const TestNode& node = *nodes_[i];
  std::vector<int64_t> coordinates = Coordinates(i, action);
  std::vector<float> values;
  values.reserve(coordinates.size());
  for (const int64_t l : coordinates) values.push_back(node.parameters[l]);
  auto part = std::make_unique<PlainRemoteVector>(
      static_cast<int64_t>(node.parameters.size()), std::move(coordinates),
      std::move(values));
  Send(i, IndexOf(action.to),
       AnswerArrived{
           names_[i], action.ask,
           Remote(std::move(part), node.buffers, node.algorithm->step(), {})});
}

namespace {

RemoteModel Pushed(const TestNode& node, const Push& push,
                   const std::vector<float>& values) {
  RemoteModel model = Remote(std::make_unique<PlainRemoteVector>(values),
                             node.buffers, push.round, push.scalars);
  model.offer = push.offer;
  return model;
}

}  // namespace

void TestNetwork::Do(size_t i, const Push& action) {
  const TestNode& node = *nodes_[i];
  std::vector<float> values(action.values.begin(), action.values.end());
  if (values.empty()) values = node.parameters;
  for (const NodeId& peer : action.peers) {
    Send(i, IndexOf(peer),
         PushArrived{names_[i], Pushed(node, action, values)});
  }
}

void TestNetwork::Do(size_t i, const Skip& action) {
  for (const NodeId& peer : action.peers) {
    Send(i, IndexOf(peer), Skipped{names_[i], action.round});
  }
}

std::unique_ptr<RemoteVector> TestNetwork::Decoded(const Give& give) {
  return std::make_unique<PlainRemoteVector>(
      std::vector<float>(give.mass->begin(), give.mass->end()));
}

void TestNetwork::Do(size_t i, const Give& action) {
  const size_t to = IndexOf(action.to);
  nodes_[i]->parcels[to] = TestNode::Parcel{action};
  Transmit(i, to);
}

void TestNetwork::Transmit(size_t from, size_t to) {
  const Give& give = nodes_[from]->parcels.at(to).give;
  const uint64_t sequence = give.sequence;
  RemoteModel mass =
      Remote(Decoded(give), give.buffers, give.round, give.scalars);
  mass.answer = give.answer;
  Send(from, to,
       MassArrived{names_[from], sequence, std::move(mass),
                   give.steps != nullptr});
  if (ResendAfter() <= 0) return;
  After(ResendAfter(), [this, from, to, sequence] {
    const auto parcel = nodes_[from]->parcels.find(to);
    if (parcel == nodes_[from]->parcels.end() ||
        parcel->second.give.sequence != sequence) {
      return;
    }
    ++repeated_;
    Transmit(from, to);
  });
}

// ----------------------------------------------------------------- timers ----

void TestNetwork::Do(size_t i, const WakeAfter& action) {
  const std::optional<double> time = TimerTime(i, action);
  if (!time) return;
  const uint64_t timer = action.timer;
  const uint64_t number = ++last_number_;
  nodes_[i]->timers[timer] = number;
  After(*time, [this, i, timer, number] {
    const auto it = nodes_[i]->timers.find(timer);
    if (it == nodes_[i]->timers.end() || it->second != number) return;
    nodes_[i]->timers.erase(it);
    Handle(i, TimerFired{timer});
  });
}

void TestNetwork::Do(size_t i, const CancelTimer& action) {
  nodes_[i]->timers.erase(action.timer);
}

}  // namespace dfl::core

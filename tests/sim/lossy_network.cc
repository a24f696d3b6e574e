#include "tests/sim/lossy_network.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "daemon/base/check.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "daemon/codec/mass_codec.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "tests/support/recorded_actions.h"

namespace dfl::core {
namespace {

constexpr double kHorizon = 20'000;  // s; no cuts are drawn beyond

RemoteModel Remote(absl::Span<const float> values, int64_t round,
                   std::vector<double> scalars) {
  RemoteModel model;
  model.parameters = std::make_unique<PlainRemoteVector>(
      std::vector<float>(values.begin(), values.end()));
  model.step = round;
  model.scalars = std::move(scalars);
  return model;
}

// As the taker decodes it.
std::unique_ptr<RemoteVector> Decoded(const Give& give) {
  codec::EncoderInput input;
  input.format = give.format;
  input.seed = give.seed;
  input.values = *give.source;
  auto encoder = codec::Encoder::Create(input);
  DFL_CHECK(encoder.ok());
  auto opened = codec::OpenMessage(codec::BodyCheck((*encoder)->header()),
                                   (*encoder)->Next((*encoder)->total_bytes()));
  DFL_CHECK(opened.ok());
  return *std::move(opened);
}

}  // namespace

struct LossyNetwork::Node {
  Node(uint64_t seed, int64_t n)
      : decisions(seed),
        parameters(n, 0.0F),
        gradient(n, 0.0F),
        settled(n, 0.0F) {}

  SeededDecisions decisions;
  std::vector<float> parameters;
  std::vector<float> gradient;
  std::vector<float> settled;  // the parameters of the last boundary
  codec::MassCodec mass_codec;
  std::unique_ptr<Algorithm> algorithm;
  std::map<uint64_t, uint64_t> timers;  // version of those that are set
  uint64_t last_version = 0;
  std::map<size_t, Parcel> parcels;  // out, by taker
  int64_t furthest = 0;              // round heard of
};

LossyNetwork::LossyNetwork(
    const std::string& algorithm, std::vector<NodePlan> plans,
    const std::vector<std::unique_ptr<simports::Problem>>& problems,
    LossyOptions options)
    : options_(options), problems_(problems), rng_(options.seed) {
  std::set<std::pair<size_t, size_t>> edges;
  for (size_t i = 0; i < plans.size(); ++i) {
    index_[plans[i].self] = i;
    names_.push_back(plans[i].self);
  }
  for (size_t i = 0; i < plans.size(); ++i) {
    for (const Neighbour& neighbour : plans[i].neighbours) {
      const size_t j = IndexOf(neighbour.node);
      edges.emplace(std::min(i, j), std::max(i, j));
    }
    auto node = std::make_unique<Node>(DeriveSeed(options.seed, "node", i),
                                       problems[i]->n());
    AlgorithmContext context;
    context.plan = std::move(plans[i]);
    context.vectors = {
        absl::MakeSpan(node->parameters), absl::MakeSpan(node->gradient), {}};
    node->mass_codec.Set(options.mass, DeriveSeed(options.seed, "mass", i));
    context.mass_code = &node->mass_codec;
    auto made = CreateAlgorithm(algorithm, std::move(context), node->decisions);
    DFL_CHECK(made.ok());
    node->algorithm = *std::move(made);
    nodes_.push_back(std::move(node));
  }
  for (const auto& [a, b] : edges) PlanCuts(a, b);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Handle(i, Started{0});
    for (size_t j = 0; j < nodes_.size(); ++j) {
      if (j != i) Handle(i, PeerUp{names_[j]});
    }
    Begin(i);
  }
}

LossyNetwork::~LossyNetwork() = default;

// Cuts of random lengths with random times between, cut_share of all; half of
// them are noticed.
void LossyNetwork::PlanCuts(size_t a, size_t b) {
  if (options_.cut_share <= 0) return;
  std::vector<double>& times = cuts_[{a, b}];
  double now = 0;
  while (now < kHorizon) {
    const double length =
        options_.shortest_cut +
        rng_.Uniform() * (options_.longest_cut - options_.shortest_cut);
    now += 2 * rng_.Uniform() * length * (1 - options_.cut_share) /
           options_.cut_share;
    times.push_back(now);
    times.push_back(now + length);
    if (rng_.Bernoulli(0.5)) {
      for (const auto& [self, other] : {std::pair{a, b}, std::pair{b, a}}) {
        AddEvent(now + rng_.Uniform(), self, PeerDown{names_[other]});
        AddEvent(now + length + rng_.Uniform(), self, PeerUp{names_[other]});
      }
    }
    now += length + 2;
  }
}

void LossyNetwork::Add(double delay, Happening happening) {
  happening.when = now_ + delay;
  happening.order = ++order_;
  queue_.push(std::move(happening));
}

void LossyNetwork::AddEvent(double delay, size_t node, Event event) {
  Happening happening;
  happening.node = node;
  happening.event = std::make_shared<Event>(std::move(event));
  Add(delay, std::move(happening));
}

bool LossyNetwork::Cut(size_t a, size_t b) const {
  const auto it = cuts_.find({std::min(a, b), std::max(a, b)});
  if (it == cuts_.end()) return false;
  const std::vector<double>& times = it->second;
  const auto next = std::upper_bound(times.begin(), times.end(), now_);
  return (next - times.begin()) % 2 == 1;
}

bool LossyNetwork::Arrives(size_t a, size_t b) {
  if (!Cut(a, b) && !rng_.Bernoulli(options_.loss)) return true;
  ++lost_;
  return false;
}

void LossyNetwork::Begin(size_t node) {
  Node& n = *nodes_[node];
  if (n.furthest > n.algorithm->step()) n.algorithm->JumpTo(n.furthest);
  AddEvent(0, node, StepBegins{});
}

void LossyNetwork::Handle(size_t node, Event event) {
  RecordedActions actions(&nodes_[node]->parameters);
  nodes_[node]->algorithm->Handle(std::move(event), actions);
  for (Action& action : actions) Do(node, std::move(action));
}

void LossyNetwork::Transmit(size_t from, size_t to) {
  Node& node = *nodes_[from];
  const auto it = node.parcels.find(to);
  if (it == node.parcels.end()) return;
  const Give& give = it->second.give;
  if (Arrives(from, to)) {
    MassArrived arrived;
    arrived.from = names_[from];
    arrived.sequence = give.sequence;
    arrived.model = Remote(*give.mass, give.round, give.scalars);
    if (give.source) arrived.model.parameters = Decoded(give);
    arrived.increments = give.steps != nullptr;
    AddEvent(rng_.Uniform() * options_.longest_delay, to, std::move(arrived));
  }
  Happening resend;
  resend.node = from;
  resend.resend = true;
  resend.peer = to;
  resend.sequence = give.sequence;
  Add(options_.resend_after, std::move(resend));
}

void LossyNetwork::Do(size_t node, Action action) {
  Node& self = *nodes_[node];
  const NodeId& name = names_[node];
  if (std::holds_alternative<ComputeGradient>(action)) {
    Happening happening;
    happening.node = node;
    happening.gradient = true;
    Add(options_.gradient_time * (0.5 + rng_.Uniform()), std::move(happening));
  } else if (auto* push = std::get_if<Push>(&action)) {
    for (const NodeId& to : push->peers) {
      const size_t j = IndexOf(to);
      if (!Arrives(node, j)) continue;
      AddEvent(
          rng_.Uniform() * options_.longest_delay, j,
          PushArrived{name, Remote(push->values, push->round, push->scalars)});
    }
  } else if (auto* give = std::get_if<Give>(&action)) {
    const size_t j = IndexOf(give->to);
    Parcel parcel{std::move(*give), false, {}};
    const auto* replicas = dynamic_cast<const ReplicaRounds*>(&rounds(node));
    if (replicas != nullptr && !replicas->conserved().empty()) {
      parcel.mass = replicas->MassOf(parcel.give);
    }
    self.parcels[j] = std::move(parcel);
    Transmit(node, j);
  } else if (auto* skip = std::get_if<Skip>(&action)) {
    for (const NodeId& to : skip->peers) {
      const size_t j = IndexOf(to);
      if (!Arrives(node, j)) continue;
      AddEvent(rng_.Uniform() * options_.longest_delay, j,
               Skipped{name, skip->round});
    }
  } else if (auto* wake = std::get_if<WakeAfter>(&action)) {
    Happening happening;
    happening.node = node;
    happening.timer = wake->timer;
    happening.timer_version = ++self.last_version;
    self.timers[wake->timer] = happening.timer_version;
    Add(absl::ToDoubleSeconds(wake->delay), std::move(happening));
  } else if (auto* cancel = std::get_if<CancelTimer>(&action)) {
    self.timers.erase(cancel->timer);
  } else if (auto* missed = std::get_if<Missed>(&action)) {
    missed_ += static_cast<int64_t>(missed->peers.size());
  } else if (std::holds_alternative<StepDone>(action)) {
    self.settled = self.parameters;
    Begin(node);
  }
}

void LossyNetwork::Happen(Happening happening) {
  now_ = happening.when;
  Node& node = *nodes_[happening.node];
  if (happening.gradient) {
    problems_[happening.node]->Gradient(node.parameters, {},
                                        absl::MakeSpan(node.gradient));
    Handle(happening.node, GradientReady{});
  } else if (happening.resend) {
    const auto it = node.parcels.find(happening.peer);
    if (it == node.parcels.end() ||
        it->second.give.sequence != happening.sequence) {
      return;
    }
    ++repeated_;
    Transmit(happening.node, happening.peer);
  } else if (happening.timer != 0) {
    const auto it = node.timers.find(happening.timer);
    if (it == node.timers.end() || it->second != happening.timer_version) {
      return;
    }
    node.timers.erase(it);
    Handle(happening.node, TimerFired{happening.timer});
  } else if (auto* mass = std::get_if<MassArrived>(happening.event.get())) {
    const size_t from = IndexOf(mass->from);
    const uint64_t sequence = mass->sequence;
    const NodeId giver = mass->from;
    node.furthest = std::max(node.furthest, mass->model.step);
    Handle(happening.node, std::move(*mass));
    Parcel& parcel = nodes_[from]->parcels[happening.node];
    if (parcel.give.sequence == sequence) parcel.taken = true;
    if (!Arrives(happening.node, from)) return;
    AddEvent(rng_.Uniform() * options_.longest_delay, from,
             Delivered{names_[happening.node], sequence,
                       node.algorithm->MassTaken(giver)});
  } else if (auto* delivered = std::get_if<Delivered>(happening.event.get())) {
    const auto it = node.parcels.find(IndexOf(delivered->to));
    if (it == node.parcels.end() ||
        it->second.give.sequence != delivered->sequence) {
      return;  // of a repeat
    }
    node.parcels.erase(it);
    Handle(happening.node, *delivered);
  } else {
    if (const auto* push = std::get_if<PushArrived>(happening.event.get())) {
      node.furthest = std::max(node.furthest, push->model.step);
    }
    if (const auto* skip = std::get_if<Skipped>(happening.event.get())) {
      node.furthest = std::max(node.furthest, skip->round);
    }
    Handle(happening.node, std::move(*happening.event));
  }
}

bool LossyNetwork::RunToRound(int64_t rounds, int64_t most_events) {
  for (int64_t events = 0; lowest_round() < rounds; ++events) {
    if (events >= most_events || queue_.empty()) return false;
    Happening next = queue_.top();
    queue_.pop();
    Happen(std::move(next));
  }
  return true;
}

int64_t LossyNetwork::lowest_round() const {
  int64_t lowest = nodes_.front()->algorithm->step();
  for (const auto& node : nodes_) {
    lowest = std::min(lowest, node->algorithm->step());
  }
  return lowest;
}

const MassRounds& LossyNetwork::rounds(size_t i) const {
  return dynamic_cast<const MassRounds&>(*nodes_[i]->algorithm);
}

std::vector<double> LossyNetwork::Mean() const {
  std::vector<double> mean(nodes_.front()->parameters.size(), 0.0);
  for (const auto& node : nodes_) {
    for (size_t l = 0; l < mean.size(); ++l) {
      mean[l] += node->settled[l] / static_cast<double>(nodes_.size());
    }
  }
  return mean;
}

// The ledgers say what is unsettled at both ends; a parcel that was taken but
// is not known to be is there twice. Of replicas' mass they say what was taken,
// and of what is out only we know.
std::vector<double> LossyNetwork::TotalMass() const {
  std::vector<double> total(nodes_.front()->parameters.size(), 0.0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<float> unsettled(total.size(), 0.0F);
    const absl::Span<const float> z = rounds(i).conserved();
    if (z.empty()) continue;
    rounds(i).AddUnsettled(absl::MakeSpan(unsettled));
    for (size_t l = 0; l < total.size(); ++l) total[l] += z[l] + unsettled[l];
    for (const auto& [to, parcel] : nodes_[i]->parcels) {
      if (!parcel.mass.empty()) {
        if (parcel.taken) continue;
        for (size_t l = 0; l < total.size(); ++l) total[l] += parcel.mass[l];
        continue;
      }
      if (!parcel.taken) continue;
      for (size_t l = 0; l < total.size(); ++l) {
        total[l] -= (*parcel.give.mass)[l];
      }
    }
  }
  return total;
}

double LossyNetwork::TotalOmega() const {
  double total = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    std::vector<float> unused(nodes_[i]->parameters.size(), 0.0F);
    total += nodes_[i]->algorithm->Gauges().at("omega") +
             rounds(i).ledger().AddUnsettled(absl::MakeSpan(unused));
    for (const auto& [to, parcel] : nodes_[i]->parcels) {
      if (parcel.taken) total -= parcel.give.scalars.front();
    }
  }
  return total;
}

double LossyNetwork::LargestEntry() const {
  double largest = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const float g : nodes_[i]->gradient) {
      largest = std::max(largest, std::fabs(static_cast<double>(g)));
    }
    for (const float z : rounds(i).conserved()) {
      largest = std::max(largest, std::fabs(static_cast<double>(z)));
    }
  }
  return largest;
}

}  // namespace dfl::core

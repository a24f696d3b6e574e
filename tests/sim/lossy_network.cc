#include "tests/sim/lossy_network.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <variant>

#include "daemon/base/check.h"
#include "daemon/codec/decoder.h"
#include "daemon/codec/encoder.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/rounds/replica_rounds.h"

namespace dfl::core {
namespace {

constexpr double kHorizon = 20'000;  // s; no cuts are drawn beyond

std::vector<NodeId> NamesOf(const std::vector<NodePlan>& plans) {
  std::vector<NodeId> names;
  for (const NodePlan& plan : plans) names.push_back(plan.self);
  return names;
}

}  // namespace

LossyNetwork::LossyNetwork(
    const std::string& algorithm, std::vector<NodePlan> plans,
    const std::vector<std::unique_ptr<simports::Problem>>& problems,
    LossyOptions options)
    : TestNetwork(NamesOf(plans)), options_(options), rng_(options.seed) {
  std::set<std::pair<size_t, size_t>> edges;
  for (size_t i = 0; i < plans.size(); ++i) {
    for (const Neighbour& neighbour : plans[i].neighbours) {
      const size_t j = IndexOf(neighbour.node);
      edges.emplace(std::min(i, j), std::max(i, j));
    }
    states_.push_back(std::make_unique<State>());
    codec::MassCodec& code = states_[i]->mass_codec;
    code.Set(options.mass, DeriveSeed(options.seed, "mass", i));
    plans[i].algorithm = *BuiltInCatalogue().Find(algorithm);
    const std::vector<float> start(problems[i]->n(), 0.0F);
    states_[i]->settled = start;
    Add(i, {.plan = std::move(plans[i]),
            .decisions = std::make_unique<SeededDecisions>(
                DeriveSeed(options.seed, "node", i)),
            .parameters = start,
            .problem = problems[i].get(),
            .mass_code = &code});
  }
  for (const auto& [a, b] : edges) PlanCuts(a, b);
  for (size_t i = 0; i < size(); ++i) {
    Handle(i, Started{0});
    LinkUp(i);
    BeginOrJump(i);
  }
}

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
        HandleAfter(now + rng_.Uniform(), self, PeerDown{name(other)});
        HandleAfter(now + length + rng_.Uniform(), self, PeerUp{name(other)});
      }
    }
    now += length + 2;
  }
}

bool LossyNetwork::Cut(size_t a, size_t b) const {
  const auto it = cuts_.find({std::min(a, b), std::max(a, b)});
  if (it == cuts_.end()) return false;
  const std::vector<double>& times = it->second;
  const auto next = std::upper_bound(times.begin(), times.end(), now());
  return (next - times.begin()) % 2 == 1;
}

std::optional<double> LossyNetwork::Latency(size_t from, size_t to,
                                            const Event& /*message*/) {
  if (Cut(from, to) || rng_.Bernoulli(options_.loss)) {
    ++lost_;
    return std::nullopt;
  }
  return rng_.Uniform() * options_.longest_delay;
}

std::unique_ptr<RemoteVector> LossyNetwork::Decoded(const Give& give) {
  if (give.source == nullptr) return TestNetwork::Decoded(give);
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

void LossyNetwork::OnAction(size_t i, const Action& action) {
  const auto* give = std::get_if<Give>(&action);
  if (give == nullptr || gossip(i) != nullptr) return;
  const auto* replicas = dynamic_cast<const ReplicaRounds*>(&rounds(i));
  if (replicas == nullptr || replicas->conserved().empty()) return;
  states_[i]->mass[IndexOf(give->to)] = replicas->MassOf(*give);
}

void LossyNetwork::OnEvent(size_t i, const Event& event) {
  int64_t& furthest = states_[i]->furthest;
  if (const auto* push = std::get_if<PushArrived>(&event)) {
    furthest = std::max(furthest, push->model.step);
  } else if (const auto* mass = std::get_if<MassArrived>(&event)) {
    furthest = std::max(furthest, mass->model.step);
  } else if (const auto* skip = std::get_if<Skipped>(&event)) {
    furthest = std::max(furthest, skip->round);
  }
}

void LossyNetwork::OnBoundary(size_t i) {
  states_[i]->settled = parameters(i);
  BeginOrJump(i);
}

void LossyNetwork::BeginOrJump(size_t i) {
  const int64_t furthest = states_[i]->furthest;
  const bool in_step = gossip(i) == nullptr;
  if (in_step && furthest > algorithm(i).step()) {
    algorithm(i).JumpTo(furthest);
  }
  Begin(i);
}

bool LossyNetwork::RunToRound(int64_t rounds, int64_t most_events) {
  for (int64_t events = 0; lowest_round() < rounds; ++events) {
    if (events == most_events || !HappenNext()) return false;
  }
  return true;
}

int64_t LossyNetwork::lowest_round() const {
  int64_t lowest = algorithm(0).step();
  for (size_t i = 0; i < size(); ++i) {
    lowest = std::min(lowest, algorithm(i).step());
  }
  return lowest;
}

const MassRounds& LossyNetwork::rounds(size_t i) const {
  return dynamic_cast<const MassRounds&>(algorithm(i));
}

const GossipNids* LossyNetwork::gossip(size_t i) const {
  return dynamic_cast<const GossipNids*>(&algorithm(i));
}

std::vector<double> LossyNetwork::Mean() const {
  std::vector<double> mean(parameters(0).size(), 0.0);
  for (const auto& state : states_) {
    for (size_t l = 0; l < mean.size(); ++l) {
      mean[l] += state->settled[l] / static_cast<double>(size());
    }
  }
  return mean;
}

// The ledgers say what is unsettled at both ends; a parcel that was taken but
// is not known to be is there twice. Of replicas' mass they say what was taken,
// and of what is out only we know.
std::vector<double> LossyNetwork::TotalMass() const {
  std::vector<double> total(parameters(0).size(), 0.0);
  for (size_t i = 0; i < size(); ++i) {
    const std::vector<double> mass = MassAt(i);
    if (mass.empty()) continue;
    for (size_t l = 0; l < total.size(); ++l) total[l] += mass[l];
    for (const auto& [to, parcel] : node(i).parcels) {
      const auto update = states_[i]->mass.find(to);
      if (update != states_[i]->mass.end()) {
        if (parcel.taken) continue;
        for (size_t l = 0; l < total.size(); ++l) total[l] += update->second[l];
        continue;
      }
      if (!parcel.taken) continue;
      const auto& answer = parcel.give.answer;
      const double share = answer != nullptr ? answer->beta : 1;
      for (size_t l = 0; l < total.size(); ++l) {
        total[l] -= share * (*parcel.give.mass)[l];
      }
    }
  }
  return total;
}

std::vector<double> LossyNetwork::MassAt(size_t i) const {
  const absl::Span<const float> z =
      gossip(i) != nullptr ? gossip(i)->control() : rounds(i).conserved();
  std::vector<float> unsettled(z.size(), 0.0F);
  if (gossip(i) != nullptr) {
    gossip(i)->ledger().AddUnsettled(absl::MakeSpan(unsettled));
  } else if (!z.empty()) {
    rounds(i).AddUnsettled(absl::MakeSpan(unsettled));
  }
  std::vector<double> mass;
  for (size_t l = 0; l < z.size(); ++l) {
    mass.push_back(static_cast<double>(z[l]) + unsettled[l]);
  }
  return mass;
}

double LossyNetwork::TotalOmega() const {
  double total = 0;
  for (size_t i = 0; i < size(); ++i) {
    std::vector<float> unused(parameters(i).size(), 0.0F);
    total += algorithm(i).Gauges().at("omega") +
             rounds(i).ledger().AddUnsettled(absl::MakeSpan(unused));
    for (const auto& [to, parcel] : node(i).parcels) {
      if (parcel.taken) total -= parcel.give.scalars.front();
    }
  }
  return total;
}

double LossyNetwork::LargestEntry() const {
  double largest = 0;
  for (size_t i = 0; i < size(); ++i) {
    for (const float g : node(i).gradient) {
      largest = std::max(largest, std::fabs(static_cast<double>(g)));
    }
    for (const double z : MassAt(i)) largest = std::max(largest, std::fabs(z));
  }
  return largest;
}

}  // namespace dfl::core

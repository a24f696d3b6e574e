#include "daemon/core/rounds/push_barrier.h"
#include "daemon/core/algorithm/algorithm_info.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"

namespace dfl::core {
namespace {

// Rounds of one neighbour whose models are kept: bounded memory, whatever it
// sends.
constexpr size_t kMostKept = 2;

constexpr char kMaxLag[] = "max_lag";

}  // namespace

PushBarrier::PushBarrier(std::vector<Neighbour> neighbours)
    : neighbours_(std::move(neighbours)) {}

void PushBarrier::SetNeighbours(std::vector<Neighbour> neighbours) {
  neighbours_ = std::move(neighbours);
  // Memory for present neighbours only.
  for (auto it = arrived_.begin(); it != arrived_.end();) {
    it = IsNeighbour(it->first) ? std::next(it) : arrived_.erase(it);
  }
}

bool PushBarrier::IsNeighbour(const NodeId& peer) const {
  return std::any_of(neighbours_.begin(), neighbours_.end(),
                     [&](const Neighbour& n) { return n.node == peer; });
}

void PushBarrier::SetUp(const NodeId& peer, bool up) {
  silent_.erase(peer);
  if (up) {
    up_.insert(peer);
  } else {
    up_.erase(peer);
    if (awaited_.erase(peer) > 0) lapsed_.insert(peer);
  }
}

void PushBarrier::SetSilent(const NodeId& peer) {
  SetUp(peer, false);
  silent_.insert(peer);
}

void PushBarrier::AwaitAgain(const NodeId& peer) {
  if (lapsed_.erase(peer) > 0 && up_.count(peer) > 0) awaited_.insert(peer);
}

void PushBarrier::BeginRound(absl::Span<const NodeId> senders) {
  awaited_.clear();
  lapsed_.clear();
  for (const NodeId& sender : senders) {
    if (up_.count(sender) > 0) {
      awaited_.insert(sender);
    } else if (silent_.count(sender) > 0) {
      lapsed_.insert(sender);
    }
  }
}

void PushBarrier::Add(const NodeId& from, RemoteModel model, int64_t round,
                      int64_t max_lag) {
  if (!IsNeighbour(from) || model.step < round - max_lag) {
    ++dropped_;
    return;
  }
  std::map<int64_t, RemoteModel>& kept = arrived_[from];
  kept.insert_or_assign(model.step, std::move(model));
  while (kept.size() > kMostKept) {
    kept.erase(kept.begin());
    ++dropped_;
  }
}

bool PushBarrier::Awaits(const NodeId& peer, int64_t round) const {
  if (awaited_.count(peer) == 0) return false;
  const auto it = arrived_.find(peer);
  return it == arrived_.end() || it->second.empty() ||
         it->second.rbegin()->first < round;
}

bool PushBarrier::Complete(int64_t round) const {
  return std::none_of(
      neighbours_.begin(), neighbours_.end(),
      [&](const Neighbour& n) { return Awaits(n.node, round); });
}

Missed PushBarrier::Missing(int64_t round) const {
  Missed missed;
  for (const Neighbour& neighbour : neighbours_) {
    if (awaited_.count(neighbour.node) == 0) continue;
    ++missed.wanted;
    if (Awaits(neighbour.node, round)) {
      missed.peers.push_back(neighbour.node);
    } else {
      ++missed.came;
    }
  }
  return missed;
}

std::vector<PushBarrier::Arrival> PushBarrier::Take(int64_t round,
                                                    int64_t max_lag) {
  std::vector<Arrival> taken;
  for (const Neighbour& neighbour : neighbours_) {
    const auto kept = arrived_.find(neighbour.node);
    if (kept == arrived_.end()) continue;
    std::map<int64_t, RemoteModel>& rounds = kept->second;
    // The newest value that is not ahead of us.
    auto newest = rounds.upper_bound(round);
    if (newest != rounds.begin()) {
      --newest;
      if (newest->first >= round - max_lag) {
        taken.push_back(Arrival{neighbour.node, neighbour.weight,
                                std::move(newest->second)});
      } else {
        ++dropped_;
      }
      dropped_ += std::distance(rounds.begin(), newest);
      rounds.erase(rounds.begin(), std::next(newest));
    }
  }
  return taken;
}

// Who is up is the node's to say, and what waits is left out: algorithm.h.
void PushBarrier::VisitState(StateFields& fields) {
  fields.Count("dropped_late", dropped_);
}

std::vector<NodeId> PushBarrier::peers() const {
  std::vector<NodeId> peers;
  peers.reserve(neighbours_.size());
  for (const Neighbour& neighbour : neighbours_) {
    peers.push_back(neighbour.node);
  }
  return peers;
}

std::vector<NodeId> PushBarrier::up_peers() const {
  std::vector<NodeId> up;
  for (const Neighbour& neighbour : neighbours_) {
    if (up_.count(neighbour.node) > 0) up.push_back(neighbour.node);
  }
  return up;
}

void MixArrivals(absl::Span<const PushBarrier::Arrival> arrivals,
                 absl::Span<float> parameters, absl::Span<float> buffers) {
  std::vector<WeightedVector> vectors;
  vectors.reserve(arrivals.size());
  for (const PushBarrier::Arrival& arrival : arrivals) {
    vectors.push_back(
        WeightedVector{arrival.model.parameters.get(), arrival.weight});
  }
  MixDifferences(vectors, parameters);
  MixBuffers(arrivals, buffers);
}

void MixBuffers(absl::Span<const PushBarrier::Arrival> arrivals,
                absl::Span<float> buffers) {
  for (size_t l = 0; l < buffers.size(); ++l) {
    float sum = 0;
    for (const PushBarrier::Arrival& arrival : arrivals) {
      sum += static_cast<float>(arrival.weight) *
             (arrival.model.buffers[l] - buffers[l]);
    }
    buffers[l] += sum;
  }
}

EdgeCost PushCost() {
  EdgeCost cost;
  cost.sent = 2;
  cost.waiting = kMostKept;
  return cost;
}

KnobSpec MaxLagKnob() {
  KnobSpec knob;
  knob.name = kMaxLag;
  knob.type = KnobType::kInteger;
  knob.default_value = int64_t{1};
  knob.min = 0;
  knob.max = 1;
  knob.unit = "rounds";
  knob.noun = KnobNoun::kPeriod;
  knob.help =
      "How old a neighbour's value may be when its value of the present round "
      "did not come before the deadline.";
  return knob;
}

int64_t MaxLagOf(const Knobs& knobs) {
  const auto found = knobs.values().find(kMaxLag);
  return found == knobs.values().end() ? 0 : std::get<int64_t>(found->second);
}

}  // namespace dfl::core

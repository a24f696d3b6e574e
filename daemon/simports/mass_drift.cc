#include "daemon/simports/mass_drift.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "daemon/core/algorithms/gossip_nids.h"
#include "daemon/core/mass/mass_ledger.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/rounds/replica_rounds.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::simports {
namespace {

using Nodes = std::map<NodeId, const core::MassRounds*>;

bool Has(const core::MassRounds* taker, const NodeId& from, uint64_t sequence) {
  return taker != nullptr && taker->ledger().last_taken(from) >= sequence;
}

const core::MassRounds* Find(const Nodes& nodes, const NodeId& node) {
  const auto found = nodes.find(node);
  return found == nodes.end() ? nullptr : found->second;
}

// What `taker` makes of a parcel that it has not got: its copy of the giver's
// replica, with all that came before.
FlatVector ReplicaAfter(const core::ReplicaRounds* taker, const NodeId& from,
                        const core::MassLedger::OutParcel& parcel) {
  FlatVector replica(parcel.mass->size(), 0.0F);
  if (taker != nullptr) {
    if (const FlatVector* present = taker->replica_of(from)) replica = *present;
    for (const core::MassLedger::Taken* taken : taker->ledger().held()) {
      if (taken->from != from) continue;
      core::ApplyParcel(taken->mass, taken->increments,
                        absl::MakeSpan(replica));
    }
  }
  core::ApplyParcel(*parcel.mass, parcel.increments, absl::MakeSpan(replica));
  return replica;
}

class Total {
 public:
  Total(const Nodes& nodes, size_t n) : nodes_(nodes), sum_(n, 0.0) {}

  void AddNode(const NodeId& name, const core::MassRounds& rounds) {
    FlatVector unsettled(sum_.size(), 0.0F);
    weight_ += rounds.AddUnsettled(absl::MakeSpan(unsettled)) +
               rounds.conserved_weight().value_or(0);
    Add(1, rounds.conserved());
    Add(1, unsettled);
    const auto* replicas = dynamic_cast<const core::ReplicaRounds*>(&rounds);
    for (const core::MassLedger::OutParcel& parcel : rounds.ledger().out()) {
      const core::MassRounds* taker = Find(nodes_, parcel.to);
      const bool taken = Has(taker, name, parcel.sequence);
      if (replicas == nullptr) {
        // The giver counted it.
        if (!taken) continue;
        Add(-1, *parcel.mass);
        weight_ -= parcel.scalar;
      } else if (!taken && parcel.scalar > 0) {
        const FlatVector replica = ReplicaAfter(
            dynamic_cast<const core::ReplicaRounds*>(taker), name, parcel);
        Add(static_cast<float>(parcel.scalar),
            absl::MakeConstSpan(replica).last(sum_.size()));
      }
    }
  }

  double Largest() const {
    double largest = 0;
    for (const double value : sum_) {
      largest = std::max(largest, std::fabs(value));
    }
    return largest;
  }
  double weight() const { return weight_; }

 private:
  void Add(float factor, absl::Span<const float> vector) {
    for (size_t l = 0; l < sum_.size(); ++l) sum_[l] += factor * vector[l];
  }

  const Nodes& nodes_;
  std::vector<double> sum_;
  double weight_ = 0;
};

std::optional<double> DriftOfRounds(const Nodes& nodes) {
  if (nodes.empty()) return std::nullopt;
  const core::MassRounds& first = *nodes.begin()->second;
  if (first.conserved().empty()) return std::nullopt;
  Total total(nodes, first.conserved().size());
  for (const auto& [name, rounds] : nodes) total.AddNode(name, *rounds);
  if (!first.conserved_weight().has_value()) return total.Largest();
  return std::fabs(total.weight() - static_cast<double>(nodes.size()));
}

// An answer is at its giver and its taker for a while, which counts once.
double DriftOfGossip(const std::map<NodeId, const core::GossipNids*>& nodes) {
  std::vector<double> sum(nodes.begin()->second->control().size(), 0.0);
  const auto add = [&](double factor, absl::Span<const float> vector) {
    for (size_t l = 0; l < sum.size(); ++l) sum[l] += factor * vector[l];
  };
  for (const auto& [name, node] : nodes) {
    FlatVector unsettled(sum.size(), 0.0F);
    node->ledger().AddUnsettled(absl::MakeSpan(unsettled));
    add(1, node->control());
    add(1, unsettled);
    for (const core::AnswerLedger::OutAnswer& out : node->ledger().out()) {
      const auto taker = nodes.find(out.to);
      if (taker != nodes.end() &&
          taker->second->ledger().last_taken(name) >= out.answer->number) {
        add(-out.answer->beta, *out.difference);
      }
    }
  }
  double largest = 0;
  for (const double value : sum) largest = std::max(largest, std::fabs(value));
  return largest;
}

// The nodes whose algorithm is an `A`.
template <typename A>
std::map<NodeId, const A*> NodesOf(
    const std::map<NodeId, const core::Algorithm*>& nodes) {
  std::map<NodeId, const A*> found;
  for (const auto& [name, algorithm] : nodes) {
    if (const auto* a = dynamic_cast<const A*>(algorithm)) found[name] = a;
  }
  return found;
}

}  // namespace

std::optional<double> MassDrift(
    const std::map<NodeId, const core::Algorithm*>& nodes) {
  const auto gossip = NodesOf<core::GossipNids>(nodes);
  if (!gossip.empty()) return DriftOfGossip(gossip);
  return DriftOfRounds(NodesOf<core::MassRounds>(nodes));
}

}  // namespace dfl::simports

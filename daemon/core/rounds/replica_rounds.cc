#include "daemon/core/rounds/replica_rounds.h"

#include <limits>
#include <memory>
#include <utility>

#include "daemon/core/algorithm/state_fields.h"
#include "daemon/core/vector/flat_vector.h"

namespace dfl::core {

EdgeCost ReplicaCost(int64_t vectors) {
  EdgeCost cost = LedgerCost(vectors);
  cost.given += vectors;
  cost.taken += vectors;
  return cost;
}

ReplicaRounds::ReplicaRounds(AlgorithmContext context, int64_t vectors,
                             bool conserves)
    : MassRounds(std::move(context), &NodePlan::neighbours,
                 MassLedger::Merge::kReplace),
      vectors_(vectors),
      conserves_(conserves) {}

void ReplicaRounds::ResetMass() {
  own_.assign(MassLength(static_cast<int64_t>(n())), 0.0F);
  update_.clear();
  steps_.reset();
  given_ = false;
  replicas_.clear();
  followers_.clear();
  if (conserves_) z_.assign(n(), 0.0F);
}

// update_ and steps_ are empty at a boundary.
void ReplicaRounds::VisitState(StateFields& fields) {
  MassRounds::VisitState(fields);
  const auto length =
      static_cast<size_t>(MassLength(static_cast<int64_t>(n())));
  fields.Vector("replica", own_, length);
  fields.ByNode("replicas", replicas_, [&](FlatVector& replica) {
    fields.Vector("values", replica, length);
  });
  fields.Nodes("followers", followers_);
  fields.Flag("given", given_);
  if (conserves_) fields.Vector("z", z_, n());
}

const FlatVector* ReplicaRounds::replica_of(const NodeId& peer) const {
  const auto it = replicas_.find(peer);
  return it == replicas_.end() ? nullptr : &it->second;
}

// ----------------------------------------------------------------- giving ----

void ReplicaRounds::SignOwn(int64_t q, absl::Span<const float> values) {
  CodeSigns(q, values, Part(own_, q), Steps(1));
  AddSteps(q);
}

void ReplicaRounds::StepOwn(int64_t q, int bits, float step,
                            absl::Span<const float> values) {
  CodeSteps(q, values, Part(own_, q), step, Steps(bits));
  AddSteps(q);
}

StepCodes& ReplicaRounds::Steps(int bits) {
  if (!steps_) {
    steps_ = std::make_shared<StepCodes>(bits, static_cast<int>(vectors_),
                                         static_cast<int64_t>(n()));
  }
  return *steps_;
}

void ReplicaRounds::AddSteps(int64_t q) {
  update_.resize(own_.size(), 0.0F);
  const absl::Span<const float> increments = Part(steps_->values, q);
  const absl::Span<float> own = absl::MakeSpan(own_).subspan(q * n(), n());
  AddIncrements(increments, own);
  for (size_t l = 0; l < own.size(); ++l) {
    if (increments[l] != 0) update_[q * n() + l] = own[l];
  }
}

void ReplicaRounds::SetOwn(int64_t q, const std::vector<int64_t>& coordinates,
                           absl::Span<const float> values) {
  update_.resize(own_.size(), 0.0F);
  const size_t begin = q * n();
  for (const int64_t l : coordinates) {
    float value = values[l];
    if (value == 0) value = std::numeric_limits<float>::min();  // it was set
    own_[begin + l] = update_[begin + l] = value;
  }
}

bool ReplicaRounds::MayGiveMass(const Neighbour& neighbour) const {
  return barrier().IsUp(neighbour.node) && !ledger().Owes(neighbour.node);
}

void ReplicaRounds::GiveOwn(
    const std::function<double(const Neighbour&)>& weight) {
  const auto update = std::make_shared<const FlatVector>(std::move(update_));
  update_ = FlatVector();
  const MassLedger::Steps steps = std::exchange(steps_, nullptr);
  // At first the update is the whole, and receivers' copies are 0.
  const bool first = !std::exchange(given_, true);
  MassLedger::Share whole;
  std::set<NodeId> followers;
  for (const Neighbour& neighbour : plan().neighbours) {
    const bool follows = first || followers_.count(neighbour.node) > 0;
    if (!follows && !whole) whole = std::make_shared<const FlatVector>(own_);
    const double w = weight(neighbour);
    ledger().Give(neighbour.node, step(), follows ? update : whole, w,
                  follows ? steps : nullptr);
    followers.insert(neighbour.node);
    if (w > 0) {
      AddScaled(-static_cast<float>(w), Part(own_, vectors_ - 1),
                absl::MakeSpan(z_));
    }
  }
  followers_ = std::move(followers);
}

FlatVector ReplicaRounds::MassOf(const Give& give) const {
  FlatVector mass(n(), 0.0F);
  if (!give.scalars.empty()) {
    AddScaled(static_cast<float>(give.scalars.front()),
              Part(own_, vectors_ - 1), absl::MakeSpan(mass));
  }
  return mass;
}

// ----------------------------------------------------------------- taking ----

void ReplicaRounds::OnTaken(const NodeId& from) {
  while (auto surplus = ledger().TakeSurplus(from)) Apply(*surplus);
}

void ApplyParcel(absl::Span<const float> mass, bool increments,
                 absl::Span<float> replica) {
  if (increments) {
    AddIncrements(mass, replica);
  } else {
    SetWhereNotZero(mass, replica);
  }
}

void ReplicaRounds::TakeUpdates() {
  for (const MassLedger::Taken& taken : ledger().TakeOut(step())) Apply(taken);
}

void ReplicaRounds::Apply(const MassLedger::Taken& taken) {
  FlatVector& replica = replicas_[taken.from];
  replica.resize(own_.size(), 0.0F);
  ApplyParcel(taken.mass, taken.increments, absl::MakeSpan(replica));
  if (conserves_ && taken.scalar > 0) {
    AddMass(taken.from, taken.scalar, Part(replica, vectors_ - 1));
  }
}

void ReplicaRounds::AddMass(const NodeId& /*from*/, double weight,
                            absl::Span<const float> replica) {
  AddScaled(static_cast<float>(weight), replica, absl::MakeSpan(z_));
}

double ReplicaRounds::AddUnsettled(absl::Span<float> vector) const {
  if (!conserves_) return 0;
  double scalars = 0;
  std::map<NodeId, FlatVector> replicas;
  for (const MassLedger::Taken* taken : ledger().held()) {
    FlatVector& replica = replicas[taken->from];
    if (replica.empty()) {
      const FlatVector* present = replica_of(taken->from);
      replica = present ? *present : FlatVector(own_.size(), 0.0F);
    }
    ApplyParcel(taken->mass, taken->increments, absl::MakeSpan(replica));
    AddScaled(static_cast<float>(taken->scalar), Part(replica, vectors_ - 1),
              vector);
    scalars += taken->scalar;
  }
  return scalars;
}

void ReplicaRounds::MixReplicas(int64_t q, double gamma,
                                absl::Span<float> x) const {
  const absl::Span<const float> own = Part(own_, q);
  for (const Neighbour& neighbour : plan().neighbours) {
    const FlatVector* replica = replica_of(neighbour.node);
    if (replica == nullptr || !barrier().IsUp(neighbour.node)) continue;
    const absl::Span<const float> theirs = Part(*replica, q);
    const auto weight = static_cast<float>(gamma * neighbour.weight);
    for (size_t l = 0; l < x.size(); ++l) {
      x[l] += weight * (theirs[l] - own[l]);
    }
  }
}

}  // namespace dfl::core

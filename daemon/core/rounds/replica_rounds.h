// Rounds in which nodes keep replicas of each other's vectors. What a node sends
// is compressed (compressor.h); everybody who gets it, and the node itself, sets
// the same entries of its replica, so that all copies of one replica are equal to
// the last bit, whatever the links do, and what was not sent is sent later.
//
// A parcel says what entries are set to, 0 meaning as they were (an entry that
// was ever set is not 0). It goes through the ledger, exactly once and in order;
// parcels that wait become one. Where the update is made of steps (step_codes.h)
// and nothing waits, these travel, in a few bits each, and both ends add them in
// the same way; a parcel of what waited, and a whole replica, are fp32. Everybody is given updates, up or not; a
// neighbour that is new in this epoch or was none for a while is given the whole
// replica first. A new epoch begins with replicas of 0.
//
// Mass (BEER's V, the D of ANQ-NIDS) moves with the parcels: i deducts w times
// its replica as it is after the parcel, w travels beside it, and j adds w times
// its copy, which is the same: once for each parcel, late or not. w > 0 only goes
// to a neighbour that is up and has all that was sent before, so it belongs to
// one round. A parcel of a later round waits for it, but no more than two do; the
// oldest is applied early then.
#ifndef DFL_CORE_ROUNDS_REPLICA_ROUNDS_H_
#define DFL_CORE_ROUNDS_REPLICA_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/mass_rounds.h"
#include "daemon/core/vector/step_codes.h"

namespace dfl::core {

class ReplicaRounds : public MassRounds {
 public:
  int64_t MassLength(int64_t n) const final { return vectors_ * n; }
  absl::Span<const float> conserved() const final { return z_; }
  // What was taken and not added yet. What is out is not in it.
  double AddUnsettled(absl::Span<float> vector) const final;

  // The node's own replica, [MassLength].
  const FlatVector& replica() const { return own_; }
  // Its copy of a neighbour's; null: nothing has come.
  const FlatVector* replica_of(const NodeId& peer) const;
  // The mass that goes with `give`, which is the newest.
  FlatVector MassOf(const Give& give) const;

 protected:
  // A replica is of `vectors` vectors [n], the last of which moves mass when
  // `conserves`.
  ReplicaRounds(AlgorithmContext context, int64_t vectors, bool conserves);

  // The q-th vector of a replica.
  absl::Span<const float> Part(const FlatVector& replica, int64_t q) const {
    return absl::MakeConstSpan(replica).subspan(q * n(), n());
  }
  // The q-th vector of one's own goes towards `values` [n], by C(values - it), C
  // being the knobs' (compressor.h).
  void Compress(int64_t q, absl::string_view purpose,
                absl::Span<const float> values, Decisions& decisions);
  // By `step`s of `bits` bits.
  void StepOwn(int64_t q, int bits, float step, absl::Span<const float> values);
  // Gives what was set since the last time; weight(j) of the mass goes to j, and
  // is deducted.
  void GiveOwn(const std::function<double(const Neighbour&)>& weight);
  // `neighbour` may be given mass.
  bool MayGiveMass(const Neighbour& neighbour) const;
  // What has come of rounds up to this one goes into the replicas.
  void TakeUpdates();
  // `weight` of the mass of `from` came, as `replica` [n] is now.
  virtual void AddMass(const NodeId& from, double weight,
                       absl::Span<const float> replica);
  // x += gamma sum_j W_ij (r_j - r_i) over the neighbours that are up and have
  // sent; r is the q-th vector.
  void MixReplicas(int64_t q, double gamma, absl::Span<float> x) const;

  void ResetMass() override;
  int64_t MaxLag() const override { return 0; }

  void VisitState(StateFields& fields) override;

  FlatVector& z() { return z_; }

 private:
  void SetOwn(int64_t q, const std::vector<int64_t>& coordinates,
              absl::Span<const float> values);
  StepCodes& Steps(int bits);
  // Adds the q-th vector of steps_ to one's own.
  void AddSteps(int64_t q);
  void OnTaken(const NodeId& from) final;
  void Apply(const MassLedger::Taken& taken);

  const int64_t vectors_;
  const bool conserves_;
  FlatVector own_;
  FlatVector update_;  // what was set since the last GiveOwn; 0: nothing
  std::shared_ptr<StepCodes> steps_;  // the same as increments, or null
  bool given_ = false;                // GiveOwn was called in this epoch
  std::map<NodeId, FlatVector> replicas_;
  std::set<NodeId> followers_;  // were given the whole replica
  FlatVector z_;                // [n], or empty
};

// Of replicas of `vectors` vectors: the ledger's; the increments beside a parcel
// that waits; a neighbour's replica.
EdgeCost ReplicaCost(int64_t vectors);

// What a parcel does to a copy of its giver's replica.
void ApplyParcel(absl::Span<const float> mass, bool increments,
                 absl::Span<float> replica);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_REPLICA_ROUNDS_H_

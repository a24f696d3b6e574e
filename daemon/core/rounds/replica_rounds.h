// Rounds in which nodes keep replicas of each other's vectors. A node sends
// compressed updates (compressor.h). The receivers and the node itself set the
// same entries of the replica. So all copies of a replica are equal to the last
// bit, whatever the links do, and what was not sent is sent later.
//
// A parcel says what entries are set to; 0 means no change (an entry that was
// ever set is not 0). It goes through the ledger, exactly once and in order,
// and pending parcels are merged. If the update consists of steps
// (step_codes.h) and nothing is pending, the steps are sent, in a few bits
// each, and both ends add them in the same way. Merged parcels and whole
// replicas are fp32.
//
// Every neighbour gets updates, up or not. One that is new in this epoch, or
// was no neighbour for a while, gets the whole replica first. A new epoch
// begins with replicas of 0.
//
// Mass (BEER's V, the D of ANQ-NIDS) moves with the parcels. Node i deducts w
// times its replica as it is after the parcel, and sends w beside the parcel.
// Node j adds w times its copy, which is equal: once for each parcel, late or
// not. w > 0 is sent only to a neighbour that is up and has received everything
// before, so it belongs to one round. A parcel of a later round waits for that
// round. At most two wait; then the oldest is applied early.
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
  // What was taken and not added yet, without what is out.
  double AddUnsettled(absl::Span<float> vector) const final;

  // The node's own replica, [MassLength].
  const FlatVector& replica() const { return own_; }
  // The node's copy of a neighbour's replica; null: nothing has come.
  const FlatVector* replica_of(const NodeId& peer) const;
  // The mass that goes with `give`, the newest parcel.
  FlatVector MassOf(const Give& give) const;

 protected:
  // A replica has `vectors` vectors [n]. With `conserves` the last one moves
  // mass.
  ReplicaRounds(AlgorithmContext context, int64_t vectors, bool conserves);

  // The q-th vector of a replica.
  absl::Span<const float> Part(const FlatVector& replica, int64_t q) const {
    return absl::MakeConstSpan(replica).subspan(q * n(), n());
  }
  // Sets the q-th vector of the own replica to `values` [n] at `coordinates`.
  void SetOwn(int64_t q, const std::vector<int64_t>& coordinates,
              absl::Span<const float> values);
  // Moves it towards `values` by signs with a scale (step_codes.h).
  void SignOwn(int64_t q, absl::Span<const float> values);
  // Moves it towards `values` by `step`s of `bits` bits.
  void StepOwn(int64_t q, int bits, float step, absl::Span<const float> values);
  // Gives what was set since the last call. weight(j) of the mass goes to j and
  // is deducted.
  void GiveOwn(const std::function<double(const Neighbour&)>& weight);
  // Whether `neighbour` may get mass.
  bool MayGiveMass(const Neighbour& neighbour) const;
  // Applies the parcels of rounds up to this one to the replicas.
  void TakeUpdates();
  // Called when `weight` of the mass of `from` has come; `replica` [n] is up to
  // date.
  virtual void AddMass(const NodeId& from, double weight,
                       absl::Span<const float> replica);
  // x += gamma sum_j W_ij (r_j - r_i) over the neighbours that are up and have
  // sent; r is the q-th vector.
  void MixReplicas(int64_t q, double gamma, absl::Span<float> x) const;

  void ResetMass() override;

  void VisitState(StateFields& fields) override;

  FlatVector& z() { return z_; }

 private:
  StepCodes& Steps(int bits);
  // Adds the q-th vector of steps_ to that of the own replica.
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

// The memory of replicas of `vectors` vectors: the ledger, the increments
// beside a pending parcel, and a neighbour's replica.
EdgeCost ReplicaCost(int64_t vectors);

// Applies a parcel to a copy of its giver's replica.
void ApplyParcel(absl::Span<const float> mass, bool increments,
                 absl::Span<float> replica);

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_REPLICA_ROUNDS_H_

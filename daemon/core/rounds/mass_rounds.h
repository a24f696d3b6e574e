// Synchronous rounds in which something is given away: gradient tracking and
// push-sum. A round is a sequence of gradients and exchanges that the subclass
// lays out; an exchange pushes models, gives mass, or both, and ends when
//
//   - every neighbour that is waited for has sent what belongs to the round, or
//     a header that it sends nothing, and
//   - what was given to it is known to be taken;
//
// else at the deadline. Models follow push_barrier.h: a missing one counts as
// no difference. Mass follows mass_ledger.h: nothing is given to a neighbour
// whose link is down (its share stays here), and what is late is added when it
// comes.
#ifndef DFL_CORE_ROUNDS_MASS_ROUNDS_H_
#define DFL_CORE_ROUNDS_MASS_ROUNDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/mass/mass_ledger.h"
#include "daemon/core/rounds/push_algorithm.h"

namespace dfl::core {

class MassRounds : public PushAlgorithm {
 public:
  bool parameters_settled() const final { return !in_round_; }
  double MassTaken(const NodeId& from) const final {
    return ledger_.taken(from);
  }
  EdgeBooks BooksWith(const NodeId& peer) const final {
    return ledger_.BooksWith(peer);
  }
  // dropped_late, step_size, mass_imbalance, mass_repeats and the subclass's.
  std::map<std::string, double> Gauges() const final;
  const MassLedger& ledger() const { return ledger_; }
  // The vector that mass is taken from and added to, [n]: its sum over all
  // nodes, with what is unsettled, does not change within an epoch. Empty where
  // nothing but replicas is kept up to date.
  virtual absl::Span<const float> conserved() const = 0;
  // Push-sum's weight, which is conserved in the vector's stead: its sum over
  // all nodes is their number. Nullopt where there is none.
  virtual std::optional<double> conserved_weight() const {
    return std::nullopt;
  }
  // For monitors and tests. Adds to `vector` [n] what was given and is not
  // known to be delivered, and what was taken and not added yet; returns the
  // scalars' sum.
  virtual double AddUnsettled(absl::Span<float> vector) const {
    return ledger_.AddUnsettled(vector);
  }

 protected:
  using Arrivals = std::vector<PushBarrier::Arrival>;

  // `heard`: the neighbours of the plan that this node waits for.
  MassRounds(AlgorithmContext context, std::vector<Neighbour> NodePlan::* heard,
             MassLedger::Merge merge = MassLedger::Merge::kSum);

  // The subclass lays a round out: each of the first three ends with one of
  // Compute, Exchange and EndMassRound.
  virtual void BeginRound(Actions& actions) = 0;
  virtual void AfterGradient(Actions& actions) = 0;
  // What came, of models in the order of neighbours.
  virtual void AfterExchange(Arrivals arrivals, Actions& actions) = 0;
  // Started, or a new epoch: the conserved vector is to begin anew.
  virtual void ResetMass() = 0;
  // Started: so is all else but the parameters.
  virtual void ResetState() {}
  virtual double StepSize() const = 0;
  virtual void AddGauges(std::map<std::string, double>& /*gauges*/) const {}
  // A parcel of `from` is in the ledger.
  virtual void OnTaken(const NodeId& /*from*/) {}

  void VisitState(StateFields& fields) override;

  // The number of parameters.
  size_t n() const { return vectors().parameters.size(); }

  // A gradient at the parameters.
  static void Compute(Actions& actions) { actions.Do(ComputeGradient{}); }
  // Of `neighbours`, those whose link is up.
  std::vector<Neighbour> Up(const std::vector<Neighbour>& neighbours) const;
  // Takes `weight` of `vector` for each of `to`: conserved[l] -= the parcel,
  // for each of them. Of equal weights one parcel is made. weight * `scalar`
  // travels with it.
  void GiveShares(const std::vector<Neighbour>& to,
                  absl::Span<const float> vector, absl::Span<float> conserved,
                  double scalar = 0);

  enum class Parts { kModels, kMass, kModelsAndMass };
  // Pushes the parameters as they are to `receivers` (unless only mass is
  // exchanged), sends what was given, and waits.
  void Exchange(Parts parts, const std::vector<Neighbour>& receivers,
                Actions& actions);
  void EndMassRound(Actions& actions);
  MassLedger& ledger() { return ledger_; }

 private:
  void OnStarted() final;
  void OnStepBegins(Actions& actions) final;
  void OnGradient(Actions& actions) final { AfterGradient(actions); }
  void OnTimer(uint64_t timer, Actions& actions) final;
  void MixIfComplete(Actions& actions) final;
  void OnMass(MassEvent event, Actions& actions) final;
  void Resume(Actions& actions) final { ledger_.SendAgain(actions); }

  bool WaitsForModels() const { return parts_ != Parts::kMass; }
  bool WaitsForMass() const { return parts_ != Parts::kModels; }
  bool Complete() const;
  // `peer` said that it sends nothing in this round.
  bool Skips(const NodeId& peer) const;
  // Something of `peer` that this exchange waits for is not here.
  bool Lacks(const NodeId& peer) const;
  void EndWait(Actions& actions);

  MassLedger ledger_;
  std::map<NodeId, int64_t> skipped_;  // newest round without anything
  Parts parts_ = Parts::kModels;
  bool in_round_ = false;
  bool waiting_ = false;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_MASS_ROUNDS_H_

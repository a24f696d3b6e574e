// What all algorithms that mix pushed models do alike: they keep the plan, the
// neighbours' models (push_barrier.h) and the count of rounds up to date. What
// a round is, its subclasses say: push_rounds.h, mass_rounds.h and
// async_dsgd.h.
#ifndef DFL_CORE_ROUNDS_PUSH_ALGORITHM_H_
#define DFL_CORE_ROUNDS_PUSH_ALGORITHM_H_

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/rounds/model_mixer.h"
#include "daemon/core/rounds/push_barrier.h"

namespace dfl::core {

class PushAlgorithm : public Algorithm {
 public:
  void Handle(Event event, Actions& actions) final;
  int64_t step() const final { return round_; }

 protected:
  // `heard`: the neighbours of the plan whose models are mixed.
  explicit PushAlgorithm(
      AlgorithmContext context,
      std::vector<Neighbour> NodePlan::* heard = &NodePlan::neighbours);

  // The run starts, or is taken up again, in round step(); no round is begun.
  virtual void OnStarted() = 0;
  virtual void OnStepBegins(Actions& actions) = 0;
  virtual void OnGradient(Actions& actions) = 0;
  virtual void OnTimer(uint64_t timer, Actions& actions) = 0;
  // A neighbour's model came; the barrier takes it next.
  virtual void OnPush(const RemoteModel& /*model*/) {}
  // A model came or a neighbour went: the round may have all it waits for.
  virtual void MixIfComplete(Actions& actions) = 0;
  // plan() is another one; settings parsed from it are to be parsed again.
  virtual void OnPlanChanged() {}
  // Events of algorithms that give mass.
  using MassEvent = std::variant<MassArrived, Delivered, Skipped, EpochBegins>;
  virtual void OnMass(MassEvent /*event*/, Actions& /*actions*/) {}

  void VisitState(StateFields& fields) override;

  // The timer by which a round waits until it mixes.
  static constexpr uint64_t kDeadlineTimer = 1;

  void MoveTo(int64_t k) override { round_ = k; }
  // Whether the iteration that ends was a round.
  virtual bool IsRound() const { return true; }
  void EndRound(Actions& actions);

  // Mixes the models of `arrivals` into `parameters` [n] and the module
  // buffers, by their weights or by the plan's aggregation rule, which goes
  // `share` of the way.
  void MixModels(absl::Span<const PushBarrier::Arrival> arrivals,
                 absl::Span<float> parameters, double share = 1);
  // What that rule did the last time.
  void AddMixGauges(std::map<std::string, double>& gauges) const {
    mixer_.AddGauges(gauges);
  }

  const NodePlan& plan() const { return plan_; }
  // The steps of an epoch, >= 1.
  int64_t batches_per_pass() const { return batches_per_pass_; }
  const NodeVectors& vectors() const { return vectors_; }
  PushBarrier& barrier() { return barrier_; }
  const PushBarrier& barrier() const { return barrier_; }
  // How many rounds old a neighbour's value may be: MaxLagOf.
  int64_t max_lag() const { return max_lag_; }

 private:
  NodePlan plan_;
  std::vector<Neighbour> NodePlan::* heard_;
  const NodeVectors vectors_;
  PushBarrier barrier_;
  ModelMixer mixer_;
  int64_t max_lag_ = 0;
  int64_t batches_per_pass_;
  int64_t round_ = 0;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_PUSH_ALGORITHM_H_

// Asynchronous DSGD over clocked rounds, and its two baselines. [thesis] ch. 2
//
// Round r at node i:
//   1. For gamma_max seconds it computes. A gradient that is ready then is
//      applied, even when it was begun tau_i rounds ago, at an earlier model of
//      the node's own; a straggler keeps its model and goes on computing:
//        theta' = theta - eta_i g_i(theta^(r - tau_i)), or theta' = theta
//      [thesis] eq. (2.2). The next gradient begins at the model after mixing.
//   2. theta <- (1 - xi) theta' + xi sum_j W_ij theta_j', W metropolis on the
//      edges usable in the round [thesis] eq. (2.9); each push carries the
//      sender's degree.
//
// eta_i = eta min_j(1 - q_j)/(1 - q_i) [thesis] Theorem 2.1, q_i = the
// probability that i straggles, given in the plan or measured over 50 rounds.
// Measured, the least 1 - q travels with the pushes from node to node, with its
// age, since a node whose q has fallen no longer says so.
//
//   async-dsgd    the above
//   barrier-dsgd  a late gradient is discarded and begun anew at the next
//                 round's model (knob discard_late)
//   sync-dsgd     no clock: every round waits for the node's own gradient, and
//                 eta is taken as it is
#ifndef DFL_CORE_ALGORITHMS_ASYNC_DSGD_H_
#define DFL_CORE_ALGORITHMS_ASYNC_DSGD_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "absl/time/time.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/push_algorithm.h"

namespace dfl::core {

AlgorithmInfo AsyncDsgdInfo();
AlgorithmInfo BarrierDsgdInfo();
AlgorithmInfo SyncDsgdInfo();

// The largest value of the knob q among the members.
struct StragglerFacts : AlgorithmFacts {
  double largest_q = 0;
};

// The share of the last 50 rounds in which a node was late; rounds that have
// not been yet count as on time. Clipped to [0, 0.99].
class StragglerRate {
 public:
  void Count(bool late);
  double q() const;
  void VisitState(StateFields& fields);

 private:
  std::deque<bool> rounds_;  // at most 50
  int64_t late_ = 0;
};

class AsyncDsgd : public PushAlgorithm {
 public:
  enum class Clock { kRounds, kNone };
  AsyncDsgd(AlgorithmContext context, Clock clock);

  bool parameters_settled() const override { return phase_ != Phase::kMixing; }
  // q, staleness (of the gradient applied last, in rounds), step_size,
  // dropped_late.
  std::map<std::string, double> Gauges() const override;

 private:
  // The knobs, by their symbols; sync-dsgd has but the first two.
  struct Settings {
    Settings(const NodePlan& plan, Clock clock);

    double eta;
    double xi;
    absl::Duration gamma_max;
    bool discards_late = false;
    bool measures_q = false;
    double q = 0;
    double largest_q = 0;
  };
  enum class Phase {
    kBoundary,
    kComputing,  // the parameters hold theta
    kMixing,     // and theta'
  };
  // The least 1 - q heard of, and how many rounds ago it was said.
  struct Heard {
    double least = 1;
    double age = 0;
  };

  void OnStarted() override { phase_ = Phase::kBoundary; }
  void OnStepBegins(Actions& actions) override;
  void OnGradient(Actions& actions) override;
  void OnTimer(uint64_t timer, Actions& actions) override;
  void OnPush(const RemoteModel& model) override;
  void MixIfComplete(Actions& actions) override;
  void OnPlanChanged() override { settings_ = Settings(plan(), clock_); }
  void VisitState(StateFields& fields) override;
  void Resume(Actions& actions) override;

  void AskForGradient(Actions& actions);
  void EndComputing(Actions& actions);
  void Mix(Actions& actions);
  void Hear(const Heard& said);

  double OwnQ() const;
  double StepSize() const;

  const Clock clock_;
  Settings settings_;

  Phase phase_ = Phase::kBoundary;
  int64_t degree_ = 0;  // of the present round

  // The gradient: none, under way, or ready.
  bool running_ = false;
  bool unwanted_ = false;  // what is under way came too late
  bool ready_ = false;
  int64_t from_round_ = 0;  // whose model it is at
  int64_t staleness_ = 0;

  StragglerRate rate_;
  Heard heard_;
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_ASYNC_DSGD_H_

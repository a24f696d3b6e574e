// Spod-GT: sporadic gradient tracking over directed graphs. [Spod-GT] eq. (2),
// (3) and Alg. 1 (whose lines 5, 10 and 17 have slips; the equations rule). In
// round k, v_i ~ Bernoulli(p_i): "i computes a gradient", and
// v^_ji ~ Bernoulli(p^_ji): "i sends to its out-neighbour j":
//
//   x_i' = x_i + sum_in v^_ij a_ij (x_j - x_i)
//   y_i' = y_i - sum_out v^_ji b_ji y_i + sum_in v^_ij b_ij y_j
//   x_i <- x_i' - eta y_i'
//   y_i <- y_i' + v_i g_i(x_i) - (v_i g_i) of the round before,  y = v g at first
//
// The tracker is kept as z = y - v g, which only transfers move, through the
// ledger: sum_i y_i = sum_i v_i g_i. To an out-neighbour that is not drawn goes
// a header that says so.
//
// A node all of whose out-neighbours are down keeps what it is given: the
// gradients of all nodes upstream come together in its y, which no move of its
// own brings to 0, and it would walk away. Until one is back it does not step.
//
// Given by knobs, or (p_draw) drawn once by node and by link from Beta(1/2, 1/2),
// as in the paper's experiments.
//
// By knobs: push-pull (p = p^ = 1), g-push-pull (p = 1), sporadic-k-gt (p^ = 1).
#ifndef DFL_CORE_ALGORITHMS_SPOD_GT_H_
#define DFL_CORE_ALGORITHMS_SPOD_GT_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/rounds/mass_rounds.h"

namespace dfl::core {

AlgorithmInfo SpodGtInfo();
AlgorithmInfo PushPullInfo();
AlgorithmInfo GPushPullInfo();
AlgorithmInfo SporadicKGtInfo();

// The least value of the knob p among the members.
struct SpodGtFacts : AlgorithmFacts {
  double least_p = 1;
};

// What p_draw drew.
struct DrawnProbabilities {
  std::optional<double> p;         // p_i; none: it computes in every round
  std::map<NodeId, double> p_hat;  // p^_ji by out-neighbour j
};

// What the node of `plan` drew, to its out-neighbours there; the same at each
// call. Nullopt where nothing is drawn.
std::optional<DrawnProbabilities> DrawnBy(const NodePlan& plan);

class SpodGt : public MassRounds {
 public:
  // `decisions` must outlive it.
  SpodGt(AlgorithmContext context, Decisions& decisions);

  absl::Span<const float> conserved() const override { return z_; }
  FlatVector Auxiliary(absl::string_view symbol) const override {
    return symbol == "y" ? Tracker() : FlatVector();
  }

 private:
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  void ResetState() override;
  void VisitState(StateFields& fields) override;
  double StepSize() const override { return plan().knobs.Number("eta"); }
  void AddGauges(std::map<std::string, double>& gauges) const override;

  // p_i (`peer` is oneself) or p^_ji, which not every variant has as a knob.
  double Probability(const char* knob, const NodeId& peer) const;
  // 1/p_i or 1: what v_i g_i is multiplied by.
  float Scale() const;
  // Whether mass comes in and none can be handed on.
  bool IsSink() const;
  // y = z + v g.
  FlatVector Tracker() const;
  // Draws v_i; computes, or goes on without.
  void MayCompute(Actions& actions);
  void Send(Actions& actions);
  void TakeMass();
  void Step();

  Decisions& decisions_;
  enum class Phase { kFirstGradient, kExchange, kGradient };
  Phase phase_ = Phase::kFirstGradient;
  bool begun_ = false;  // the gradient at the start was drawn
  // v_i g_i of the round is scale_ times NodeVectors::gradient; 0: v_i = 0.
  float scale_ = 0;
  // Of z_, what came while it was a sink; [n], or empty since it could hand on.
  FlatVector held_;
  int64_t sent_ = 0;  // drawn out-neighbours, of all rounds
  int64_t could_send_ = 0;
  FlatVector z_;  // [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_SPOD_GT_H_

// Spod-GT: sporadic gradient tracking over directed graphs. [Spod-GT] eq. (2),
// (3) and Alg. 1 (whose lines 5, 10 and 17 have slips; the equations rule). In
// round k, v_i ~ Bernoulli(p_i): "i computes a gradient", and
// v^_ji ~ Bernoulli(p^_ji): "i sends to its out-neighbour j":
//
//   x_i' = x_i + sum_in v^_ij a_ij (x_j - x_i)
//   y_i' = y_i - sum_out v^_ji b_ji y_i + sum_in v^_ij b_ij y_j
//   x_i <- x_i' - eta y_i'
//   y_i <- y_i' + v_i g_i(x_i) - (v_i g_i) of the round before,
//                                                y = v g at first
//
// The tracker is kept as z = y - v g, which only transfers move, through the
// ledger: sum_i y_i = sum_i v_i g_i. To an out-neighbour that is not drawn goes
// a header that says so.
//
// Where nobody is up that a node could hand its tracker on to, see SinkRule.
//
// Given by knobs, or (p_draw) drawn once by node and by link from
// Beta(1/2, 1/2), as in the paper's experiments.
//
// By knobs: push-pull (p = p^ = 1), g-push-pull (p = 1), sporadic-k-gt
// (p^ = 1).
#ifndef DFL_CORE_ALGORITHMS_SPOD_GT_H_
#define DFL_CORE_ALGORITHMS_SPOD_GT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
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

// What Spod-GT does while links are down and the graph is not strongly
// connected, which [Spod-GT] takes for granted: a deviation from eq. (2), (3).
//
// A *sink* is a node all of whose out-neighbours are down while others still
// give to it. The gradients of all nodes upstream come together in its tracker
// y, and no move of its own brings y to 0: it would walk away from the
// minimiser. So a sink mixes and does not step. It keeps what it is given,
// which counts again as soon as some of it can be handed on.
//
// Where nobody gives to it any more either, it steps again, but without what it
// was given as a sink: the sum at the time of the cut would drive it away for
// as long as it is alone.
class SinkRule {
 public:
  // The links of the round: the number of out-neighbours, how many of them are
  // up, and how many in-neighbours are.
  void SetLinks(size_t out, size_t out_up, size_t in_up);
  // Whether the node is a sink in this round, so that it may not step.
  bool sink() const { return sink_; }
  // Calls `take`, which adds to the tracker `z` [n] what came in this round.
  void Take(absl::Span<const float> z, absl::FunctionRef<void()> take);
  // Subtracts from `y` [n] what was given to a sink that has been one, or
  // alone, ever since.
  void Deduct(absl::Span<float> y) const;

  // Nothing was given yet.
  void Reset();
  void VisitState(StateFields& fields, size_t n);

 private:
  bool sink_ = false;
  FlatVector held_;  // what Deduct subtracts, [n]; empty: nothing
};

class SpodGt : public MassRounds {
 public:
  // `decisions` must outlive it.
  SpodGt(AlgorithmContext context, Decisions& decisions);

  absl::Span<const float> conserved() const override { return z_; }
  FlatVector Auxiliary(absl::string_view symbol) const override {
    return symbol == "y" ? Tracker() : FlatVector();
  }

 private:
  // The knobs, by their symbols. Not every variant has p, p_hat and unbias.
  struct Settings {
    explicit Settings(const NodePlan& plan);

    double eta;
    double p = 1;
    std::map<NodeId, double> p_hat;  // p^_ji by out-neighbour j
    float scale = 1;                 // of v_i g_i: 1/p_i or 1
  };

  Pace PaceOf(int64_t k) const override {
    return {TimesAtMost(settings_.p, k), k};
  }
  void BeginRound(Actions& actions) override;
  void AfterGradient(Actions& actions) override;
  void AfterExchange(Arrivals arrivals, Actions& actions) override;
  void ResetMass() override;
  void ResetState() override;
  void VisitState(StateFields& fields) override;
  double StepSize() const override { return settings_.eta; }
  void OnPlanChanged() override { settings_ = Settings(plan()); }
  void AddGauges(std::map<std::string, double>& gauges) const override;

  // y = z + v g.
  FlatVector Tracker() const;
  // Draws v_i; computes, or goes on without.
  void MayCompute(Actions& actions);
  void Send(Actions& actions);
  void Step();

  Settings settings_;
  Decisions& decisions_;
  enum class Phase { kFirstGradient, kExchange, kGradient };
  Phase phase_ = Phase::kFirstGradient;
  bool begun_ = false;  // the gradient at the start was drawn
  // v_i g_i of the round is scale_ times NodeVectors::gradient; 0: v_i = 0.
  float scale_ = 0;
  SinkRule sink_rule_;
  int64_t sent_ = 0;  // drawn out-neighbours, of all rounds
  int64_t could_send_ = 0;
  FlatVector z_;  // [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHMS_SPOD_GT_H_

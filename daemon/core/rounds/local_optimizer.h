// The local optimiser of a plan: one step on the node's own parameters w [n]
// with a mini-batch gradient g [n], t = 1, 2, ... being the number of its
// steps.
//
//   all       g <- g min(1, clip_norm/|g|)                if clip_norm > 0
//             eta_t = eta times the share of the schedule (optimizer_spec.h)
//   sgd       w <- w - eta_t (g + lambda w)
//   momentum  v <- mu v + (g + lambda w);  w <- w - eta_t v
//   adam      g <- g + lambda w
//             m <- beta1 m + (1 - beta1) g
//             v <- beta2 v + (1 - beta2) g^2
//             w <- w - eta_t (m/(1 - beta1^t)) / (sqrt(v/(1 - beta2^t)) + eps)
//   adamw     w <- (1 - eta_t lambda) w, then as adam with lambda = 0
//
// lambda is weight_decay, and moments are 0 at first. adam is [Kingma & Ba
// 2015] Alg. 1; its lambda is L2 regularisation, as in PyTorch. adamw is
// [Loshchilov & Hutter 2019] Alg. 2, with the decay multiplied by the step
// size, as in PyTorch. Numbers are those of torch.optim with the same settings,
// but that clip_grad_norm_ divides by |g| + 1e-6.
//
// Moments are the node's own: they are neither sent nor mixed, and a node that
// joins begins with 0. They stay when a round ends, unless fresh_each_round.
#ifndef DFL_CORE_ROUNDS_LOCAL_OPTIMIZER_H_
#define DFL_CORE_ROUNDS_LOCAL_OPTIMIZER_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "daemon/base/aligned_vector.h"
#include "daemon/core/algorithm/optimizer_spec.h"
#include "daemon/core/algorithm/state_fields.h"

namespace dfl::core {

// The share of eta in the step that comes after `steps`.
double ScheduledShare(const ScheduleSpec& schedule, int64_t steps);

class LocalOptimizer {
 public:
  // `spec` has passed the checks of a plan.
  explicit LocalOptimizer(OptimizerSpec spec);

  // Whether the plan names one. Otherwise Step is not to be called.
  bool on() const { return !spec_.name.empty(); }
  // Other settings of the same optimiser keep its moments.
  void SetSpec(OptimizerSpec spec);

  // A round of local steps begins.
  void BeginRound();
  // A step of `parameters` [n] by `gradient` [n], with base step size `eta`;
  // `steps` were done before it, here or by those whose model this is.
  void Step(double eta, int64_t steps, absl::Span<const float> gradient,
            absl::Span<float> parameters);
  // eta_t of the coming step.
  double StepSize(double eta, int64_t steps) const {
    return eta * ScheduledShare(spec_.schedule, steps);
  }

  // For n parameters. Nothing, where the plan names none.
  void VisitState(StateFields& fields, size_t n);

 private:
  bool adaptive() const {
    return spec_.name == "adam" || spec_.name == "adamw";
  }
  void Reset();
  void StepAdaptively(float rate, float scale, absl::Span<const float> gradient,
                      absl::Span<float> parameters);

  OptimizerSpec spec_;
  int64_t taken_ = 0;  // steps since the moments were 0
  FlatVector first_;   // v of momentum, m of adam, [n] from the first step on
  FlatVector second_;  // v of adam, [n]
};

}  // namespace dfl::core

#endif  // DFL_CORE_ROUNDS_LOCAL_OPTIMIZER_H_

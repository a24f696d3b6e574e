// The local optimiser that a plan names (its section `optimizer`): what an
// algorithm's local steps do with a mini-batch gradient. The step size is the
// algorithm's own knob, eta. rounds/local_optimizer.h has the formulas.
#ifndef DFL_CORE_ALGORITHM_OPTIMIZER_SPEC_H_
#define DFL_CORE_ALGORITHM_OPTIMIZER_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace dfl::core {

// The share of eta that a step has, by the number t of steps done before it.
// While t < warmup it is (t + 1)/warmup. After that, with s = t - warmup:
//
//   constant  1
//   cosine    floor + (1 - floor) (1 + cos(pi min(s, length)/length))/2
//   step      factor^(s / every), in whole numbers
//
// [Loshchilov & Hutter 2017] eq. (5), without restarts.
struct ScheduleSpec {
  std::string kind = "constant";
  int64_t warmup = 0;   // steps, >= 0
  int64_t length = 0;   // cosine: steps of the fall, >= 1
  double floor = 0;     // cosine: the share at its end, [0, 1]
  int64_t every = 0;    // step: steps from one fall to the next, >= 1
  double factor = 0.1;  // step: of each fall, (0, 1]

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

struct OptimizerSpec {
  // "sgd", "momentum", "adam" or "adamw"; "": the algorithm's own step.
  std::string name;
  double momentum = 0.9;  // of momentum, [0, 1)
  double beta1 = 0.9;     // of adam and adamw, [0, 1)
  double beta2 = 0.999;
  double epsilon = 1e-8;    // > 0
  double weight_decay = 0;  // >= 0
  // Gradients whose Euclidean norm is larger are made this long; 0: none is.
  double clip_norm = 0;
  // Whether moments begin anew in each round, as theta of dfedavgm does.
  bool fresh_each_round = false;
  ScheduleSpec schedule;

  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

// The vectors of n floats that an optimiser keeps.
inline int64_t OptimizerVectors(absl::string_view name) {
  if (name == "momentum") return 1;
  return name == "adam" || name == "adamw" ? 2 : 0;
}

}  // namespace dfl::core

#endif  // DFL_CORE_ALGORITHM_OPTIMIZER_SPEC_H_

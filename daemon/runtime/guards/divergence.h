// Whether the node's own training has blown up.
//
//   loss        above kTimes the largest of the first kFirst losses, and above
//               kTimes: the gradient at it is not to be used
//   parameters  their root mean square above kTimes what it was when training
//               began, and above kTimes; or one of them not finite
//
// Pure bookkeeping, of one life of a model.
#ifndef DFL_RUNTIME_GUARDS_DIVERGENCE_H_
#define DFL_RUNTIME_GUARDS_DIVERGENCE_H_

#include <string>

#include "absl/types/span.h"

namespace dfl::runtime {

class Divergence {
 public:
  static constexpr double kTimes = 1000;
  static constexpr int kFirst = 20;

  // Training begins with `parameters` [n].
  void Begin(absl::Span<const float> parameters);
  // Both: what is wrong; "": nothing.
  std::string OnLoss(double loss);
  // Cost: one pass over `parameters` [n].
  std::string OnParameters(absl::Span<const float> parameters) const;

 private:
  double begun_ = 0;  // root mean square of the parameters
  double largest_loss_ = 1;
  int losses_ = 0;  // that largest_loss_ is of
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_DIVERGENCE_H_

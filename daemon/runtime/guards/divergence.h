// Whether the node's own training has blown up.
//
//   loss        above kTimes the largest of the first kFirst losses, and above
//               kTimes: the gradient at it is not to be used. Among the first
//               themselves one is compared with the median of those before it,
//               and those far above the median of all set no bound
//   parameters  their root mean square above kTimes what it was when training
//               began, and above kTimes; or one of them not finite
//
// Pure bookkeeping, of one life of a model.
#ifndef DFL_RUNTIME_GUARDS_DIVERGENCE_H_
#define DFL_RUNTIME_GUARDS_DIVERGENCE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace dfl::runtime {

class Divergence {
 public:
  static constexpr double kTimes = 1000;
  static constexpr size_t kFirst = 20;

  // Training begins with `parameters` [n].
  void Begin(absl::Span<const float> parameters);
  // Both: what is wrong; "": nothing.
  std::string OnLoss(double loss);
  // Cost: one pass over `parameters` [n].
  std::string OnParameters(absl::Span<const float> parameters) const;

 private:
  // What is far above the usual loss.
  double FarAbove() const;

  double begun_ = 0;           // root mean square of the parameters
  std::vector<double> first_;  // losses, at most kFirst
  double bound_ = 0;           // of losses, by first_
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_GUARDS_DIVERGENCE_H_

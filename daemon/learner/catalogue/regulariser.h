// Passes over flat vectors that need no LibTorch: the l2 term, finiteness.
#ifndef DFL_LEARNER_CATALOGUE_REGULARISER_H_
#define DFL_LEARNER_CATALOGUE_REGULARISER_H_

#include "absl/types/span.h"

namespace dfl::learner {

// gradient += l2 parameters; returns (l2/2) ||parameters||^2. If l2 is 0 it
// does nothing and returns 0. Sizes are equal (checked).
double AddRegulariser(double l2, absl::Span<const float> parameters,
                      absl::Span<float> gradient);

// Whether no value is infinite or NaN. One pass.
bool AllFinite(absl::Span<const float> values);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_REGULARISER_H_

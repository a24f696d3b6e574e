// The losses a model can be trained with, as means over the rows of a batch.
#ifndef DFL_LEARNER_LOSSES_H_
#define DFL_LEARNER_LOSSES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/learner/catalogue/model_spec.h"

namespace dfl::learner {

// Whether outputs of this shape and type for `rows` rows can be used.
// Errors: INVALID_ARGUMENT says what is allowed. A regression may have [rows]
// or [rows, 1]; so may two classes with hinge, logistic, mse and bce, where the
// output's sign is the class.
absl::Status CheckOutputs(const ResolvedSpec& spec, int64_t rows,
                          const at::Tensor& outputs);

// The mean loss, a scalar. `answers` [rows] are labels (int64), or targets
// (float32) if classes is 0. For outputs f and label y (or target t) of one
// row:
//   cross-entropy  w_y (ln sum_j e^f_j - f_y); the mean divides by the sum of
//                  the rows' weights w_y, which are 1 without class_weights
//   hinge          sum over j != y of max(0, 1 - f_y + f_j) (Weston and
//                  Watkins); one output: max(0, 1 - s f), s = -1 or 1
//   mse            mean over j of (f_j - [j = y])^2; one output: (f - s)^2;
//                  regression: (f - t)^2
//   logistic       sum over j of ln(1 + e^(-s_j f_j)), s_j = 1 for j = y, else
//                  -1; one output: ln(1 + e^(-s f))
//   bce            binary cross-entropy of logits: as logistic, but the mean
//                  over j
//   huber          e = |f - t|, d = huber_delta: e^2 / 2 for e <= d, else
//                  d (e - d / 2)
at::Tensor MeanLoss(const ResolvedSpec& spec, const at::Tensor& outputs,
                    const at::Tensor& answers);

// [rows] int64: the class with the largest output, or the sign's.
at::Tensor Predictions(const at::Tensor& outputs);

// [rows, classes] float64: softmax of the outputs; a single output f counts as
// the logits 0 and f.
at::Tensor Probabilities(const at::Tensor& outputs);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_LOSSES_H_

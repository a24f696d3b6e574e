// The losses of learner/losses.h without LibTorch, with their derivatives, and
// the same bits on every processor.
#ifndef DFL_LEARNER_PLAIN_LOSSES_H_
#define DFL_LEARNER_PLAIN_LOSSES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "daemon/learner/catalogue/model_spec.h"

namespace dfl::learner {

// The answers of the rows of a batch: labels of a classification, targets of a
// regression.
struct Answers {
  absl::Span<const int64_t> labels;
  absl::Span<const float> targets;
};

// The mean loss over the rows of `outputs` [rows x spec.outputs()], row-major.
// Where `by_outputs` is given it becomes the derivatives of that by the
// outputs, of the same shape.
double PlainMeanLoss(const ResolvedSpec& spec, absl::Span<const float> outputs,
                     const Answers& answers,
                     std::vector<float>* by_outputs = nullptr);

// [rows]: the first class with the largest output, or the sign's.
std::vector<int64_t> PlainPredictions(const ResolvedSpec& spec,
                                      absl::Span<const float> outputs);

// [rows x classes]: softmax of the outputs; a single output f counts as the
// logits 0 and f.
std::vector<double> PlainProbabilities(const ResolvedSpec& spec,
                                       absl::Span<const float> outputs);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_PLAIN_LOSSES_H_

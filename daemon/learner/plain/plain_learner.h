// Learner without LibTorch: linear, logistic, svm and mlp on one thread. For
// small models it is as quick as LibTorch's learner, takes some hundred
// kilobytes in place of its fifty megabytes, and needs nothing loaded.
//
// What it computes is what LibTorch's learner does, up to the rounding of
// float32: rows, dropout, starting values and layout are the same. Other than
// that one's, its bits are the same on every processor.
#ifndef DFL_LEARNER_PLAIN_PLAIN_LEARNER_H_
#define DFL_LEARNER_PLAIN_PLAIN_LEARNER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/learner/catalogue/learner_data.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// The number of parameters of the model that `spec` names; 0: a plain learner
// does not know it.
int64_t PlainParameterCount(const ResolvedSpec& spec);

// Builds the model that `spec` names, a linear, logistic, svm or mlp, for this
// data. `options` say only the seed here. The model's info has `warning`,
// unless it is "".
// Errors: INVALID_ARGUMENT: the spec is wrong, alone or for this data, or of
// another kind; the text says what was found and what is allowed.
absl::StatusOr<std::unique_ptr<ports::Learner>> CreatePlainLearner(
    const core::ModelSpec& spec, LearnerData data,
    const LearnerOptions& options, const std::string& warning = "");

}  // namespace dfl::learner

#endif  // DFL_LEARNER_PLAIN_PLAIN_LEARNER_H_

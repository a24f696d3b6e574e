// Tries a model from a file on this node's rows before a plan is accepted: in
// evaluation and in training mode, with one row, two rows and a whole batch.
#ifndef DFL_LEARNER_TRIAL_H_
#define DFL_LEARNER_TRIAL_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/module.h"

namespace dfl::learner {

struct TrialData {
  const data::DatasetView& train;  // at least one row
  const data::Standardizer& standardizer;
  int64_t batch_size = 1;  // of the plan
  at::Device device = at::kCPU;
};

struct TrialResult {
  // The fewest rows that a training batch may have: 2 where the model
  // normalises by the batch, and one row would give no gradient, or statistics
  // that are not finite.
  int64_t min_rows = 1;
  // What works but is probably not meant, a sentence each.
  std::vector<std::string> warnings;
};

// Binds `module`, computes with it and leaves it so: it is not to be used for
// anything else. Rows that are not finite do not make a model unfit.
// Errors: INVALID_ARGUMENT says in which mode and with how many rows the model
// cannot be used, or that the node has one row and the model needs two;
// RESOURCE_EXHAUSTED: memory.
absl::StatusOr<TrialResult> TryModel(const ResolvedSpec& spec,
                                     const TrialData& data, Module& module);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TRIAL_H_

// What a learner is made from, beside the plan's model section: the node's rows
// and its settings. And what a data contract says of a model. Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_LEARNER_DATA_H_
#define DFL_LEARNER_CATALOGUE_LEARNER_DATA_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/data/dataset.h"
#include "daemon/data/standardizer.h"
#include "daemon/learner/catalogue/model_spec.h"

namespace dfl::learner {

struct LearnerData {
  explicit LearnerData(data::DatasetView train_rows)
      : train(std::move(train_rows)) {}

  // The node's own rows, at least one.
  data::DatasetView train;
  // Rows of the same shape to evaluate on; empty: no evaluation.
  absl::optional<data::DatasetView> test;
  // Applied to both.
  data::Standardizer standardizer;
  // What the rows mean; the learner fills in task, shape, loss and model. The
  // labels are numbers of its classes.
  core::DataContract contract;
};

struct LearnerOptions {
  // See CheckDevice.
  std::string device = "cpu";
  // How many threads may train, >= 1: asked before each gradient and each
  // evaluation, so it may change. Cheap and thread-safe. Null: one thread.
  std::function<int()> threads;
  // The seed of mini-batches and dropout; it differs between nodes.
  uint64_t data_seed = 1;
  // Of the plan: a model from a file is tried with it. >= 1.
  int64_t batch_size = 32;
};

// Errors: INVALID_ARGUMENT without training rows, for a standardizer that does
// not fit, and for test rows that are not like the training rows.
absl::Status CheckData(const LearnerData& data);

// What these rows offer to a model.
DataShape ShapeOf(const LearnerData& data);

// What a data contract says of a model.
struct ModelIdentity {
  std::string loss;   // with all its settings
  std::string model;  // 64 hexadecimal digits
};

// SHA-256, 64 hexadecimal digits, of the structure (StructureText) and, for
// TorchScript, of what HashArchive gives (learner/archive_hash.h).
std::string ModelHash(const ResolvedSpec& spec, absl::string_view archive_hash);

// What ResolveStructure gives for a task and rows of this shape, which may not
// be final.
absl::StatusOr<ResolvedSpec> ResolveFor(const core::ModelSpec& spec,
                                        core::Task task,
                                        const std::vector<int64_t>& shape);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_LEARNER_DATA_H_

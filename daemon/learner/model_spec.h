// From the plan's model section and the shape of the data to a complete spec.
// Torch-free.
#ifndef DFL_LEARNER_MODEL_SPEC_H_
#define DFL_LEARNER_MODEL_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::learner {

enum class ModelKind {
  kLinear,
  kLogistic,
  kSvm,
  kMlp,
  kCnn,
  kResnet20,
  kResnet18,
  kTorchScript,
};

enum class LossKind { kCrossEntropy, kHinge, kMse, kLogistic };

// What the data offers to a model.
struct DataShape {
  std::vector<int64_t> row;  // of one example
  int64_t classes = 0;       // 0: regression
};

struct ResolvedSpec {
  ModelKind kind = ModelKind::kCnn;
  LossKind loss = LossKind::kCrossEntropy;
  int64_t classes = 0;         // 0: regression
  std::vector<int64_t> input;  // of one example
  std::vector<int64_t> hidden;
  double dropout = 0;
  double l2 = 0;
  std::string path;  // torchscript

  // Values in one example.
  int64_t input_size() const;
  // Width of the output of one of our models. A TorchScript model for two
  // classes may also have one output.
  int64_t outputs() const { return classes == 0 ? 1 : classes; }
};

// "cross-entropy", "hinge", "mse", "logistic".
absl::string_view LossName(LossKind loss);

// Fills in what `spec` leaves open (input from the data, loss from the model)
// and checks the rest, alone and against the data.
// Errors: INVALID_ARGUMENT "model.KEY: what was found; allowed: ...".
absl::StatusOr<ResolvedSpec> ResolveSpec(const core::ModelSpec& spec,
                                         const DataShape& data);

// The spec as text for the fingerprint. Equal models have equal texts, whatever
// the path of the file and whoever wrote the plan.
std::string CanonicalText(const ResolvedSpec& spec);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_MODEL_SPEC_H_

// From the plan's model section and the shape of the data to a complete spec.
// Torch-free.
#ifndef DFL_LEARNER_CATALOGUE_MODEL_SPEC_H_
#define DFL_LEARNER_CATALOGUE_MODEL_SPEC_H_

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

enum class LossKind { kCrossEntropy, kHinge, kMse, kLogistic, kHuber, kBce };

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
  bool reshapes = false;  // the plan gives rows another shape than the data
  std::vector<int64_t> hidden;
  double dropout = 0;
  double l2 = 0;
  double huber_delta = 1;
  std::vector<double> class_weights;  // [classes]; empty: all 1
  std::string path;                   // torchscript

  // Values in one example.
  int64_t input_size() const;
  // Width of the output of one of our models: bce of two classes has one. A
  // TorchScript model may have another (CheckOutputs).
  int64_t outputs() const;
};

// "cross-entropy", "hinge", "mse", "logistic", "huber", "bce".
absl::string_view LossName(LossKind loss);

// All that the trained objective adds to the model: "cross-entropy",
// "huber, huber_delta 0.5, l2 0.01". Equal objectives have equal texts.
std::string LossText(const ResolvedSpec& spec);

// Fills in what `spec` leaves open (input and number of classes from the data,
// loss from the model) and checks the rest, alone and against the data.
// Errors: INVALID_ARGUMENT "model.KEY: what was found; allowed: ...".
absl::StatusOr<ResolvedSpec> ResolveSpec(const core::ModelSpec& spec,
                                         const DataShape& data);

// The same as far as the contract needs it (LossText, StructureText), for data
// whose width and number of classes may not be final. data.classes is 0 for a
// regression, and any other number for classes.
absl::StatusOr<ResolvedSpec> ResolveStructure(const core::ModelSpec& spec,
                                              const DataShape& data);

// The structure of the model as text, to be hashed. Equal models have equal
// texts, whatever the path of the file and whoever wrote the plan. What the
// data contract says elsewhere is not in it: classes, shape and loss. The input
// is, where the plan states one.
std::string StructureText(const ResolvedSpec& spec);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_MODEL_SPEC_H_

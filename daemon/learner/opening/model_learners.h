// Which learner trains a model, and making it:
//
//   plain      linear, logistic, svm and mlp of at most kMostPlain parameters,
//              on the processor (learner/plain): small, and there at once
//   LibTorch   all others; it is loaded when the first of them comes
//
// Where LibTorch is not installed, a plain learner takes the larger ones of its
// kinds too, and its model says in a warning that this is slow. Both learners
// mean the same by a model, so the nodes of a run may have different ones.
#ifndef DFL_LEARNER_OPENING_MODEL_LEARNERS_H_
#define DFL_LEARNER_OPENING_MODEL_LEARNERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/learner/catalogue/learner_data.h"
#include "daemon/learner/catalogue/torch_interface.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// Up to here one thread is quick enough: a mini-batch of 32 rows takes some
// milliseconds, and the model stays in a processor's cache.
inline constexpr int64_t kMostPlain = int64_t{1} << 18;

// Thread-safe.
class ModelLearners {
 public:
  // `places`: where LibTorch's learner may be (TorchModulePlaces).
  explicit ModelLearners(std::vector<std::string> places)
      : places_(std::move(places)) {}

  // Whether gradients can be computed on `device`: "cpu", for which nothing is
  // loaded; or "cuda" or "cuda:N", if LibTorch supports CUDA and finds that
  // GPU.
  // Errors: INVALID_ARGUMENT for another text; FAILED_PRECONDITION when the
  // device, or LibTorch, is not available.
  absl::Status CheckDevice(const std::string& device);

  // Of the model that `spec` names, for a task and rows of this shape, which
  // may not be final. Create's contract says the same. Builds no model, and
  // needs LibTorch for a TorchScript file only.
  // Errors: as Create, as far as that tells.
  absl::StatusOr<ModelIdentity> Identify(const core::ModelSpec& spec,
                                         core::Task task,
                                         const std::vector<int64_t>& shape);

  // Builds the model that `spec` names for this data.
  // Errors: as CreatePlainLearner or CreateTorchLearner; FAILED_PRECONDITION
  // when the model needs LibTorch and OpenTorchModule fails.
  absl::StatusOr<std::unique_ptr<ports::Learner>> Create(
      const core::ModelSpec& spec, LearnerData data,
      const LearnerOptions& options);

  // Libraries for people: "LibTorch 2.6.0", or that it is not loaded.
  std::vector<std::string> Libraries() const;

 private:
  absl::StatusOr<const TorchInterface*> Torch();

  const std::vector<std::string> places_;
  std::atomic<const TorchInterface*> torch_{nullptr};  // null: not loaded
};

// What computes in `learner`, for people: "plain", "LibTorch 2.6.0"; "" for one
// that ModelLearners did not make.
std::string EngineOf(const ports::Learner& learner);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_OPENING_MODEL_LEARNERS_H_

// What app needs of LibTorch, without its headers: learners for a model spec on
// this node's data. main links torch_learner_factory.cc; tests have a fake.
#ifndef DFL_APP_LEARNER_FACTORY_H_
#define DFL_APP_LEARNER_FACTORY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/learner.h"

namespace dfl::app {

// Thread-compatible.
class LearnerFactory {
 public:
  virtual ~LearnerFactory() = default;

  // A learner for `spec` on this node's rows.
  // Errors: what a user must mend: INVALID_ARGUMENT, NOT_FOUND, ...; the text
  // names the place, the value found and what is allowed.
  virtual absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& spec) = 0;

  // The model as a TorchScript file, piece by piece into `sink`; on the
  // training thread.
  // Errors: INVALID_ARGUMENT when the model is none.
  virtual absl::Status ExportTorchScript(
      ports::Learner& learner, absl::Span<const float> parameters,
      absl::Span<const float> buffers,
      const std::function<absl::Status(absl::string_view)>& sink) = 0;

  // "torch 1.13.1", for `dflctl version`.
  virtual std::vector<std::string> Libraries() const = 0;
};

}  // namespace dfl::app

#endif  // DFL_APP_LEARNER_FACTORY_H_

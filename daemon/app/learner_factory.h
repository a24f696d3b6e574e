// Learners for a model spec on this node's data. models/data_learners.h has
// them on its data files; tests have a fake.
#ifndef DFL_APP_LEARNER_FACTORY_H_
#define DFL_APP_LEARNER_FACTORY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/app/compute/thread_policy.h"
#include "daemon/control/backend.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_offer.h"
#include "daemon/core/contract/data_section.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/learner.h"

namespace dfl::app {

// Thread-compatible. Offer, Report, Warnings and Build are called on the setup
// thread.
class LearnerFactory {
 public:
  virtual ~LearnerFactory() = default;

  // What this node's data and settings say of the data contract, under a plan
  // that states `section`: what the settings leave to a default, the section
  // may say. `spec` gives loss and model; null: there is no plan, and both are
  // "". No rows are read again and no model is built.
  // Errors: as Build, for the spec alone and its file.
  virtual absl::StatusOr<core::DataOffer> Offer(
      const core::ModelSpec* spec, const core::DataSection& section) = 0;

  // The rows and where they come from, for people and programs.
  virtual control::DataReport Report() = 0;

  // What a person should look at in the rows if they are scaled like this; that
  // of Report is for the settings' own scaling.
  virtual std::vector<std::string> Warnings(
      const core::InputScaling& scaling) = 0;

  // A learner for `spec` on this node's rows, brought into the form of
  // `contract`: labels have its numbers, columns its order, raw values its
  // scaling. `contract` was resolved from an Offer; it is the contract of the
  // learner's model, and says how many classes there are. A model from a file
  // is tried with batches of `batch_size` rows.
  // Errors: what a user must mend: INVALID_ARGUMENT, NOT_FOUND, ...; the text
  // names the place, the value found and what is allowed.
  virtual absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      const core::ModelSpec& spec, const core::DataContract& contract,
      int64_t batch_size) = 0;

  // The model as a TorchScript file, piece by piece into `sink`; on the
  // training thread.
  // Errors: INVALID_ARGUMENT when the model is none.
  virtual absl::Status ExportTorchScript(
      ports::Learner& learner, absl::Span<const float> parameters,
      absl::Span<const float> buffers,
      const std::function<absl::Status(absl::string_view)>& sink) = 0;

  // What computes in a learner that Build made, for people: "plain", "LibTorch
  // 2.6.0"; "": not told.
  virtual std::string EngineOf(const ports::Learner& learner) const = 0;
  // On how many threads such a learner trains now, and why. Thread-safe.
  virtual ThreadChoice Threads(const std::string& engine) const = 0;

  // "LibTorch 1.13.1", for `dflctl version`. Thread-safe.
  virtual std::vector<std::string> Libraries() const = 0;
};

}  // namespace dfl::app

#endif  // DFL_APP_LEARNER_FACTORY_H_

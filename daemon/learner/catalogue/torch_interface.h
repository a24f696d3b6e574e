// What the rest of the program needs of LibTorch: one interface, behind the one
// C symbol of a shared object that is opened when a plan needs it
// (learner/opening/torch_module.h). Torch-free.
//
// Both sides are C++ of one build: objects of the standard library, of Abseil
// and of our rooms cross the border. So a shared object of another build is
// refused, by the text that TorchInterfaceVersion makes.
#ifndef DFL_LEARNER_CATALOGUE_TORCH_INTERFACE_H_
#define DFL_LEARNER_CATALOGUE_TORCH_INTERFACE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/learner/catalogue/learner_data.h"
#include "daemon/ports/learner.h"

namespace dfl::learner {

// The functions of torch_learner.h. Thread-safe.
class TorchInterface {
 public:
  virtual ~TorchInterface() = default;

  virtual std::string Version() const = 0;  // of LibTorch: "2.6.0"
  virtual absl::Status CheckDevice(const std::string& device) const = 0;
  virtual absl::StatusOr<ModelIdentity> Identify(
      const core::ModelSpec& spec, core::Task task,
      const std::vector<int64_t>& shape) const = 0;
  virtual absl::StatusOr<std::unique_ptr<ports::Learner>> Create(
      const core::ModelSpec& spec, LearnerData data,
      const LearnerOptions& options) const = 0;
};

// What a shared object and a program must have in common: the version of dfld,
// the number of this interface, the compiler, and the sizes of what crosses the
// border.
std::string TorchInterfaceVersion();

// The symbol of the shared object, `extern "C"`: null when its version is not
// `version`; then *own is what it has. The object lives as long as the process.
using OpenTorchInterface = const TorchInterface*(const char* version,
                                                 const char** own);
inline constexpr char kTorchSymbol[] = "dfl_open_torch_interface";

// Writes the model of a TorchScript learner as a file that LibTorch and PyTorch
// can load. Must not run concurrently with the learner's other calls.
class TorchScriptExporter {
 public:
  virtual ~TorchScriptExporter() = default;

  // Takes the next bytes of the file; an error ends the export.
  using Sink = std::function<absl::Status(absl::string_view)>;

  // Exports the loaded model with `parameters` [n] and `buffers` [b] (a
  // snapshot, or the bound ones) in place of its own. Integer buffers and
  // frozen parameters stay as they are, and so do the modes of the parts. Needs
  // memory for one more model.
  // Errors: INVALID_ARGUMENT for other sizes; the sink's; INTERNAL.
  virtual absl::Status ExportTorchScript(absl::Span<const float> parameters,
                                         absl::Span<const float> buffers,
                                         const Sink& sink) = 0;
};

// The exporter of a learner of TorchInterface::Create, or null when its model
// is no TorchScript. Lives as long as the learner.
TorchScriptExporter* AsTorchScriptExporter(ports::Learner& learner);

}  // namespace dfl::learner

#endif  // DFL_LEARNER_CATALOGUE_TORCH_INTERFACE_H_

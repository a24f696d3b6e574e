// A model from a TorchScript file: any architecture, trained like ours.
#ifndef DFL_LEARNER_TORCHSCRIPT_H_
#define DFL_LEARNER_TORCHSCRIPT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/learner/model_spec.h"
#include "daemon/learner/module.h"
#include "daemon/learner/torch_learner.h"

namespace dfl::learner {

class ScriptModule : public Module {
 public:
  // Reads spec.path and tries it on two rows of zeros.
  // Errors: as CreateTorchLearner; every text begins with the path.
  static absl::StatusOr<std::unique_ptr<ScriptModule>> Load(
      const ResolvedSpec& spec, at::Device device);

  // SHA-256 of the file as it was read.
  virtual const std::string& file_hash() const = 0;

  // Writes the model with these values, one for each of Parameters() and of
  // Buffers(), in the same order.
  // Errors: the sink's. Throws what LibTorch throws.
  virtual absl::Status Export(const std::vector<at::Tensor>& parameters,
                              const std::vector<at::Tensor>& buffers,
                              const TorchScriptExporter::Sink& sink) const = 0;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TORCHSCRIPT_H_

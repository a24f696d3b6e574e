// A model from a TorchScript file: any architecture, trained like ours.
#ifndef DFL_LEARNER_TORCHSCRIPT_H_
#define DFL_LEARNER_TORCHSCRIPT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/catalogue/torch_interface.h"
#include "daemon/learner/module.h"

namespace dfl::learner {

class ScriptModule : public Module {
 public:
  // Reads spec.path.
  // Errors: as CreateTorchLearner; every text names the path.
  static absl::StatusOr<std::unique_ptr<ScriptModule>> Load(
      const ResolvedSpec& spec, at::Device device);

  // As HashArchive gave it before the file was read.
  virtual const std::string& archive_hash() const = 0;

  // As ports::ModelInfo's.
  virtual std::vector<ports::FixedTensor> Others() const = 0;
  virtual std::map<std::string, std::string> OtherAliases() const = 0;
  virtual std::vector<std::string> Warnings() const = 0;

  // Writes the model with these values, one for each of Parameters() and of
  // Buffers(), in the same order, and with the modes of its parts as they were
  // in the file.
  // Errors: the sink's. Throws what LibTorch throws.
  virtual absl::Status Export(const std::vector<at::Tensor>& parameters,
                              const std::vector<at::Tensor>& buffers,
                              const TorchScriptExporter::Sink& sink) = 0;
};

}  // namespace dfl::learner

#endif  // DFL_LEARNER_TORCHSCRIPT_H_

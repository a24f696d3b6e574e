// The shared object dfld-torch.so: LibTorch's learner behind one C symbol.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/learner/catalogue/torch_interface.h"
#include "daemon/learner/torch_learner.h"

namespace dfl::learner {
namespace {

class Torch final : public TorchInterface {
 public:
  std::string Version() const override { return TorchVersion(); }
  absl::Status CheckDevice(const std::string& device) const override {
    return learner::CheckDevice(device);
  }
  absl::StatusOr<ModelIdentity> Identify(
      const core::ModelSpec& spec, core::Task task,
      const std::vector<int64_t>& shape) const override {
    return IdentifyModel(spec, task, shape);
  }
  absl::StatusOr<std::unique_ptr<ports::Learner>> Create(
      const core::ModelSpec& spec, LearnerData data,
      const LearnerOptions& options) const override {
    return CreateTorchLearner(spec, std::move(data), options);
  }
};

}  // namespace
}  // namespace dfl::learner

extern "C" __attribute__((visibility("default")))
const dfl::learner::TorchInterface*
dfl_open_torch_interface(const char* version, const char** own) {
  static const auto* const kOwn =
      new std::string(dfl::learner::TorchInterfaceVersion());
  *own = kOwn->c_str();
  if (*kOwn != version) return nullptr;
  static const dfl::learner::Torch kTorch;
  return &kTorch;
}

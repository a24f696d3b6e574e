#include "daemon/learner/opening/model_learners.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/learner/catalogue/batch_learner.h"
#include "daemon/learner/catalogue/model_spec.h"
#include "daemon/learner/opening/torch_module.h"
#include "daemon/learner/plain/plain_learner.h"

namespace dfl::learner {

absl::StatusOr<const TorchInterface*> ModelLearners::Torch() {
  const TorchInterface* torch = torch_.load();
  if (torch == nullptr) {
    DFL_ASSIGN_OR_RETURN(torch, OpenTorchModule(places_));
    torch_.store(torch);
  }
  return torch;
}

absl::Status ModelLearners::CheckDevice(const std::string& device) {
  if (device == "cpu") return absl::OkStatus();
  if (!absl::StartsWith(device, "cuda")) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", device, "\" is unknown; allowed: cpu, cuda, cuda:N"));
  }
  DFL_ASSIGN_OR_RETURN(const TorchInterface* const torch, Torch());
  return torch->CheckDevice(device);
}

absl::StatusOr<ModelIdentity> ModelLearners::Identify(
    const core::ModelSpec& spec, core::Task task,
    const std::vector<int64_t>& shape) {
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved,
                       ResolveFor(spec, task, shape));
  if (resolved.kind != ModelKind::kTorchScript) {
    return ModelIdentity{LossText(resolved), ModelHash(resolved, "")};
  }
  auto torch = Torch();
  if (!torch.ok()) return Annotate(torch.status(), "model.kind: torchscript");
  return (*torch)->Identify(spec, task, shape);
}

absl::StatusOr<std::unique_ptr<ports::Learner>> ModelLearners::Create(
    const core::ModelSpec& spec, LearnerData data,
    const LearnerOptions& options) {
  DFL_RETURN_IF_ERROR(CheckData(data));
  DFL_ASSIGN_OR_RETURN(const ResolvedSpec resolved,
                       ResolveSpec(spec, ShapeOf(data)));
  const bool on_processor = options.device == "cpu";
  const int64_t parameters = on_processor ? PlainParameterCount(resolved) : 0;
  if (parameters > 0 && parameters <= kMostPlain) {
    return CreatePlainLearner(spec, std::move(data), options);
  }
  auto torch = Torch();
  if (torch.ok()) return (*torch)->Create(spec, std::move(data), options);
  if (parameters == 0) {
    return Annotate(torch.status(), absl::StrCat("model.kind: ", spec.kind));
  }
  return CreatePlainLearner(
      spec, std::move(data), options,
      absl::StrCat(spec.kind, " of ", parameters,
                   " parameters is trained without LibTorch, on one thread, "
                   "which is slow above ",
                   kMostPlain, ": ", torch.status().message()));
}

std::vector<std::string> ModelLearners::Libraries() const {
  const TorchInterface* const torch = torch_.load();
  if (torch != nullptr) return {absl::StrCat("LibTorch ", torch->Version())};
  const bool there =
      std::any_of(places_.begin(), places_.end(), [](const std::string& file) {
        return ::access(file.c_str(), F_OK) == 0;
      });
  return {there ? "LibTorch not loaded" : "LibTorch not installed"};
}

std::string EngineOf(const ports::Learner& learner) {
  const auto* const known = dynamic_cast<const BatchLearner*>(&learner);
  return known == nullptr ? "" : known->engine();
}

}  // namespace dfl::learner

#include "daemon/learner/script_slots.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status_macros.h"

namespace dfl::learner {
namespace {

std::string ShapeText(const at::Tensor& tensor) {
  return absl::StrCat(
      c10::toString(tensor.scalar_type()), " [",
      absl::StrJoin(tensor.sizes().begin(), tensor.sizes().end(), ", "), "]");
}

// Copies what forward assigned to the name of `bound` into it.
absl::Status Keep(const NamedTensor& bound, bool trained,
                  const c10::IValue& assigned) {
  if (trained) {
    return absl::InvalidArgumentError(absl::StrCat(
        "forward assigns another tensor to the trained parameter ", bound.name,
        "; allowed: models that train their parameters by gradients alone"));
  }
  const bool fits = assigned.isTensor() && assigned.toTensor().defined() &&
                    assigned.toTensor().sizes() == bound.tensor.sizes() &&
                    assigned.toTensor().scalar_type() == at::kFloat;
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "forward assigns to the buffer ", bound.name, " ",
        assigned.isTensor() && assigned.toTensor().defined()
            ? ShapeText(assigned.toTensor())
            : absl::StrCat("a ", assigned.tagKind()),
        "; allowed: ", ShapeText(bound.tensor), ", as in the file"));
  }
  at::Tensor tensor = bound.tensor;
  tensor.copy_(assigned.toTensor().detach());
  return absl::OkStatus();
}

}  // namespace

ScriptSlots::ScriptSlots(const torch::jit::Module& module,
                         const std::vector<NamedTensor>& parameters,
                         const std::vector<NamedTensor>& buffers) {
  for (const NamedTensor& named : parameters) Add(module, named, true);
  for (const NamedTensor& named : buffers) Add(module, named, false);
}

void ScriptSlots::Add(const torch::jit::Module& module,
                      const NamedTensor& named, bool trained) {
  torch::jit::Module owner = module;
  std::vector<std::string> path = absl::StrSplit(named.name, '.');
  const std::string attribute = path.back();
  path.pop_back();
  for (const std::string& part : path) owner = owner.attr(part).toModule();
  Slot slot{named, trained, owner._ivalue(), 0};
  slot.index = owner.type()->getAttributeSlot(attribute);
  slots_.push_back(std::move(slot));
}

absl::Status ScriptSlots::TakeBack(Module::Assigned assigned) {
  const c10::AutoGradMode no_gradients(false);
  absl::Status status;
  for (const Slot& slot : slots_) {
    const c10::IValue now = slot.owner->getSlot(slot.index);
    if (now.isTensor() && now.toTensor().unsafeGetTensorImpl() ==
                              slot.bound.tensor.unsafeGetTensorImpl()) {
      continue;
    }
    slot.owner->setSlot(slot.index, slot.bound.tensor);
    if (assigned == Module::Assigned::kKeep) {
      status.Update(Keep(slot.bound, slot.trained, now));
    }
  }
  return status;
}

}  // namespace dfl::learner

#include "daemon/learner/script_modes.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace dfl::learner {
namespace {

using torch::jit::Module;

bool HasMode(const Module& part) {
  return part.hasattr("training") && part.attr("training").isBool();
}

// Whether the part has tensors, its own or of parts in it, and trains none.
bool IsFrozen(const Module& part) {
  bool any = false;
  for (const at::Tensor& parameter : part.parameters()) {
    if (parameter.requires_grad()) return false;
    any = true;
  }
  return any || part.buffers().size() > 0;
}

// Whether `name` is the part `part` or lies in it.
bool IsIn(absl::string_view name, absl::string_view part) {
  return part.empty() || name == part ||
         absl::StartsWith(name, absl::StrCat(part, "."));
}

}  // namespace

ScriptModes::ScriptModes(const Module& module) {
  for (const auto& named : module.named_modules()) {
    if (!HasMode(named.value)) continue;
    Part part{named.name, named.value};
    part.saved = named.value.attr("training").toBool();
    part.frozen = IsFrozen(named.value);
    parts_.push_back(std::move(part));
  }
  const bool all_evaluate =
      std::none_of(parts_.begin(), parts_.end(),
                   [](const Part& part) { return part.saved; });
  const auto in_frozen = [this](const Part& part) {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& other) {
      return other.frozen && IsIn(part.name, other.name);
    });
  };
  for (Part& part : parts_) {
    part.follows = part.saved || (all_evaluate && !in_frozen(part));
    forgot_train_ = forgot_train_ || (all_evaluate && part.follows);
  }
  for (const Part& part : parts_) {
    if (!part.frozen) continue;
    const bool moves =
        std::any_of(parts_.begin(), parts_.end(), [&](const Part& other) {
          return other.follows && IsIn(other.name, part.name);
        });
    if (!moves) constant_.push_back(part.name);
    const bool named = std::any_of(
        drifting_.begin(), drifting_.end(),
        [&](const std::string& other) { return IsIn(part.name, other); });
    if (part.saved && !named && part.module.parameters().size() > 0 &&
        part.module.buffers().size() > 0) {
      drifting_.push_back(part.name);
    }
  }
}

void ScriptModes::Set(bool training) {
  for (Part& part : parts_) {
    if (part.follows) {
      part.module.setattr("training", training);
    }
  }
}

void ScriptModes::Restore() {
  for (Part& part : parts_) part.module.setattr("training", part.saved);
}

bool ScriptModes::IsConstant(absl::string_view tensor) const {
  return std::any_of(
      constant_.begin(), constant_.end(),
      [&](const std::string& part) { return IsIn(tensor, part); });
}

}  // namespace dfl::learner

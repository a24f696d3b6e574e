#include "daemon/core/plan/check_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/names.h"
#include "daemon/base/status_macros.h"
#include "daemon/core/algorithm/knobs.h"
#include "daemon/core/algorithm/optimizer_spec.h"

namespace dfl::core {
namespace {

absl::Status Bad(absl::string_view key, absl::string_view found,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(
      "optimizer.", key, ": ", found, " is not allowed; allowed: ", allowed));
}

// A number of the section: its key, its value and its default, its range, and
// who looks at it.
struct Setting {
  const char* key;
  double value;
  double standard;
  double least;
  bool least_open;
  double most;  // infinity: none
  bool most_open;
  bool used;
  const char* users;
};

absl::Status CheckSetting(const Setting& setting) {
  if (!setting.used && setting.value != setting.standard) {
    return Bad(
        setting.key, ToString(setting.value),
        absl::StrCat("nothing, since only ", setting.users, " looks at it"));
  }
  if (!setting.used) return absl::OkStatus();
  const bool low = setting.least_open ? setting.value > setting.least
                                      : setting.value >= setting.least;
  const bool high = setting.most_open ? setting.value < setting.most
                                      : setting.value <= setting.most;
  if (low && high && std::isfinite(setting.value)) return absl::OkStatus();
  KnobSpec range;
  range.min = setting.least;
  range.min_open = setting.least_open;
  range.max = setting.most;
  range.max_open = setting.most_open;
  return Bad(setting.key, ToString(setting.value), range.AllowedText());
}

absl::Status CheckSettings(const OptimizerSpec& spec) {
  const double none = std::numeric_limits<double>::infinity();
  const OptimizerSpec standard;
  const bool momentum = spec.name == "momentum";
  const bool adaptive = spec.name == "adam" || spec.name == "adamw";
  for (const Setting& setting : {
           Setting{"momentum", spec.momentum, standard.momentum, 0, false, 1,
                   true, momentum, "name: momentum"},
           Setting{"beta1", spec.beta1, standard.beta1, 0, false, 1, true,
                   adaptive, "name: adam or adamw"},
           Setting{"beta2", spec.beta2, standard.beta2, 0, false, 1, true,
                   adaptive, "name: adam or adamw"},
           Setting{"epsilon", spec.epsilon, standard.epsilon, 0, true, none,
                   true, adaptive, "name: adam or adamw"},
           Setting{"weight_decay", spec.weight_decay, 0, 0, false, none, true,
                   true, ""},
           Setting{"clip_norm", spec.clip_norm, 0, 0, false, none, true, true,
                   ""},
       }) {
    DFL_RETURN_IF_ERROR(CheckSetting(setting));
  }
  if (spec.fresh_each_round && OptimizerVectors(spec.name) == 0) {
    return Bad("fresh_each_round", "on",
               absl::StrCat("off, since ", spec.name, " has no moments"));
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const ScheduleSpec& spec) {
  const std::vector<std::string> kinds = {"constant", "cosine", "step"};
  if (std::find(kinds.begin(), kinds.end(), spec.kind) == kinds.end()) {
    return UnknownNameError("optimizer.schedule.kind", spec.kind, kinds);
  }
  const double none = std::numeric_limits<double>::infinity();
  const bool cosine = spec.kind == "cosine";
  const bool step = spec.kind == "step";
  for (const Setting& setting : {
           Setting{"schedule.warmup", static_cast<double>(spec.warmup), 0, 0,
                   false, none, true, true, ""},
           Setting{"schedule.length", static_cast<double>(spec.length), 0, 1,
                   false, none, true, cosine, "kind: cosine"},
           Setting{"schedule.floor", spec.floor, 0, 0, false, 1, false, cosine,
                   "kind: cosine"},
           Setting{"schedule.every", static_cast<double>(spec.every), 0, 1,
                   false, none, true, step, "kind: step"},
           Setting{"schedule.factor", spec.factor, ScheduleSpec().factor, 0,
                   true, 1, false, step, "kind: step"},
       }) {
    DFL_RETURN_IF_ERROR(CheckSetting(setting));
  }
  return absl::OkStatus();
}

absl::Status CheckKnobsOf(const OptimizerSpec& spec, const RunPlan& plan,
                          const AlgorithmInfo& algorithm,
                          const KnobValues& overrides, const std::string& key) {
  const std::string& replaced = algorithm.optimizer_replaces;
  if (!replaced.empty() && overrides.count(replaced) > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        key, replaced, ": optimizer.name is ", spec.name,
        ", which takes its place; leave it out, or leave the optimizer out"));
  }
  if (!algorithm.optimizer_needs_local_form) return absl::OkStatus();
  DFL_ASSIGN_OR_RETURN(
      const Knobs knobs,
      Knobs::Resolve(algorithm.knobs, plan.algorithm.knobs, overrides));
  if (knobs.Text("form") == "local") return absl::OkStatus();
  return Bad("name", absl::StrCat("\"", spec.name, "\""),
             absl::StrCat("nothing, since ", key,
                          "form is gradient: that step is one with the mixing; "
                          "with form: local there are local steps"));
}

}  // namespace

absl::Status CheckOptimizer(const RunPlan& plan,
                            const AlgorithmInfo& algorithm) {
  const OptimizerSpec& spec = plan.optimizer;
  if (spec == OptimizerSpec()) return absl::OkStatus();
  const std::vector<std::string> names = {"sgd", "momentum", "adam", "adamw"};
  if (spec.name.empty()) {
    return absl::InvalidArgumentError(
        "optimizer.name: missing; allowed: sgd, momentum, adam, adamw, or no "
        "section optimizer at all");
  }
  if (std::find(names.begin(), names.end(), spec.name) == names.end()) {
    return UnknownNameError("optimizer.name", spec.name, names);
  }
  if (!algorithm.own_step.empty()) {
    return Bad("name", absl::StrCat("\"", spec.name, "\""),
               absl::StrCat("nothing, since algorithm.name is ", algorithm.name,
                            ": ", algorithm.own_step));
  }
  DFL_RETURN_IF_ERROR(CheckSettings(spec));
  DFL_RETURN_IF_ERROR(CheckSchedule(spec.schedule));
  DFL_RETURN_IF_ERROR(CheckKnobsOf(spec, plan, algorithm, plan.algorithm.knobs,
                                   "algorithm.knobs."));
  for (const auto& [node, overrides] : plan.nodes) {
    DFL_RETURN_IF_ERROR(
        CheckKnobsOf(spec, plan, algorithm, overrides.knobs,
                     absl::StrCat("nodes.", node.name(), ".knobs.")));
  }
  return absl::OkStatus();
}

}  // namespace dfl::core

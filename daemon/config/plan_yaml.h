// The run plan as a YAML document: what `dflctl plan apply` takes, what
// `dflctl plan show` prints, what nodes keep on disk. deploy/plan.example.yaml
// is a commented one.
//
//   version, run, seed     set by the first apply; leave them out
//   participants           all (the default), [name, label=value, ...], or
//                          {fixed: [name, {name: ..., rows: ...}, ...]}; the
//                          older key `members` is the same as fixed
//   model                  {kind, classes, input, hidden, dropout, path, loss,
//                           l2}
//   data                   {task, classes: [...], features: [...], shape,
//                           divide, standardise: {per, over, mean, std},
//                           model}: the data contract; what is open the first
//                          apply fixes
//   batch_size
//   algorithm              {name, knobs: {knob: value}}
//   topology               {kind, edge_probability, degree, radius,
//                           edges: [[a, b], ...],
//                           edge_sets: [[[a, b], ...], ...], directed, every,
//                           weights, matrix: [[...], ...]}
//   codec                  {coordinates, values, rate, mass}
//   evaluation             {every_steps, examples}
//   stop                   {steps, time, loss_below, accuracy_above}
//   deadline               {exchange}
//   nodes                  {name: {knobs: {knob: value}}}
//
// Durations are written "500ms", "2s", "1h30m". A range of integers is written
// [5, 10], 5..10 or 7.
#ifndef DFL_CONFIG_PLAN_YAML_H_
#define DFL_CONFIG_PLAN_YAML_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/check_plan.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::config {

// The longest plan.
inline constexpr size_t kMaxPlanBytes = size_t{8} << 20;

// Reads a plan and checks it as core::CheckPlan does. The input need not be
// trusted: any bytes give a plan or an error. `file_name` is only quoted;
// `catalogue` has the algorithms that the plan may name.
// Errors: INVALID_ARGUMENT with a line for each of the first ten mistakes,
//   FILE:LINE: KEY: what was found; allowed: ...
absl::StatusOr<core::RunPlan> ParsePlan(
    absl::string_view text, absl::string_view file_name,
    const core::Catalogue& catalogue = core::BuiltInCatalogue());

// As ParsePlan, with what the checks built. Before the plan is checked,
// `complete` fills in what the document leaves open, such as a version and a
// seed, so that one check is enough. A mistake there is reported with the line
// of its key, if the key has one.
absl::StatusOr<core::CheckedPlan> ParseCheckedPlan(
    absl::string_view text, absl::string_view file_name,
    absl::FunctionRef<void(core::RunPlan&)> complete,
    const core::Catalogue& catalogue = core::BuiltInCatalogue());

// The place of a plan in a larger document, such as a simulated network.
struct PlanSurroundings {
  std::vector<std::string> keys;  // beside the plan's own; ignored
  // Who is there; sorted bytewise, no doubles. They are the fixed set of a plan
  // that does not say who takes part, or all of them take part in it.
  std::vector<core::MemberSpec> members;
  bool all_take_part = false;
};

// As ParsePlan, for a document that has been parsed to a tree.
absl::StatusOr<core::RunPlan> ReadPlan(
    const YamlNode& root, absl::string_view file_name,
    const PlanSurroundings& around = {},
    const core::Catalogue& catalogue = core::BuiltInCatalogue());

// The canonical text of a plan: ParsePlan(WritePlan(p)) equals p, and equal
// plans have equal texts. `plan` has passed core::CheckPlan.
std::string WritePlan(const core::RunPlan& plan);

}  // namespace dfl::config

#endif  // DFL_CONFIG_PLAN_YAML_H_

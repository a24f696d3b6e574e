#include "daemon/config/plan_yaml.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/plan_document.h"
#include "daemon/config/plan_lists.h"
#include "daemon/config/plan_table.h"
#include "daemon/config/yaml_reader.h"
#include "daemon/config/yaml_tree.h"
#include "daemon/core/plan/participants.h"

namespace dfl::config {
namespace {

std::vector<std::string> Names(absl::Span<const PlanKey> keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const PlanKey& key : keys) names.push_back(key.key);
  return names;
}

// Reads the keys of `section`, whose path is `path`. Where a section is absent
// or none, its keys are read from an empty one, so that all have their say.
void ReadKeys(absl::Span<const PlanKey> keys, const YamlNode& section,
              const std::string& path, PlanReading& in) {
  for (const PlanKey& key : keys) {
    if (key.keys.empty()) {
      key.read(section, path, in);
      continue;
    }
    static const YamlNode& empty = *new YamlNode();
    const YamlNode* inner =
        in.yaml.Section(section, path, key.key, Names(key.keys));
    ReadKeys(key.keys, inner == nullptr ? empty : *inner,
             YamlReader::Join(path, key.key), in);
  }
}

// A section of which there is nothing to write is left out.
void WriteKeys(absl::Span<const PlanKey> keys, const core::RunPlan& plan,
               int depth, PlanWriter& out) {
  for (const PlanKey& key : keys) {
    if (key.keys.empty()) {
      key.write(plan, depth, out);
      continue;
    }
    PlanWriter inner;
    WriteKeys(key.keys, plan, depth + 1, inner);
    const std::string text = inner.Take();
    if (text.empty()) continue;
    out.Line(depth, key.key, "");
    out.Lines(text);
  }
}

// What a document means that leaves out who takes part, and the graph. One that
// lists its members under the older key, or has them from around it, means all
// pairs of them.
void SetDefaults(const YamlNode& root, const PlanSurroundings& around,
                 core::RunPlan& plan) {
  const bool said = root.Find("participants") != nullptr;
  const bool named = (!around.members.empty() && !around.all_take_part) ||
                     root.Find(kFormerMembers) != nullptr;
  if (!said && !named) {
    plan.participants.kind = core::ParticipantsSpec::Kind::kAll;
  }
  if (said || !named) plan.topology.kind = "auto";
}

absl::StatusOr<core::CheckedPlan> Read(
    const YamlNode& root, absl::string_view file,
    const PlanSurroundings& around, const core::Catalogue& catalogue,
    absl::FunctionRef<void(core::RunPlan&)> complete) {
  PlanReading in(file, catalogue);
  if (!in.yaml.IsSection(root, "plan")) return in.yaml.status();
  std::vector<std::string> keys = Names(PlanTable());
  keys.emplace_back(kFormerMembers);
  keys.insert(keys.end(), around.keys.begin(), around.keys.end());
  in.yaml.TakeKeys(root, "", keys);
  in.plan.members = around.members;
  SetDefaults(root, around, in.plan);
  ReadKeys(PlanTable(), root, "", in);
  DFL_RETURN_IF_ERROR(in.yaml.status());
  if (core::FollowsView(in.plan)) {
    core::ResolveParticipants(in.plan, around.members, catalogue);
  }
  complete(in.plan);
  absl::StatusOr<core::CheckedPlan> checked =
      core::CheckPlan(std::move(in.plan), catalogue);
  if (checked.ok()) return checked;
  const absl::string_view wrong = checked.status().message();
  return absl::InvalidArgumentError(
      absl::StrCat(file, ":", in.yaml.LineOf(wrong), ": ", wrong));
}

}  // namespace

absl::StatusOr<core::RunPlan> ParsePlan(absl::string_view text,
                                        absl::string_view file_name,
                                        const core::Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(
      const core::CheckedPlan checked,
      ParseCheckedPlan(text, file_name, [](core::RunPlan&) {}, catalogue));
  return *checked.plan;
}

absl::StatusOr<core::CheckedPlan> ParseCheckedPlan(
    absl::string_view text, absl::string_view file_name,
    absl::FunctionRef<void(core::RunPlan&)> complete,
    const core::Catalogue& catalogue) {
  if (text.size() > kMaxPlanBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_name, ":1: plan: found ", text.size(),
                     " bytes; allowed: at most ", kMaxPlanBytes));
  }
  DFL_ASSIGN_OR_RETURN(const YamlNode root, ParseYaml(text, file_name));
  DFL_ASSIGN_OR_RETURN(core::CheckedPlan checked,
                       Read(root, file_name, {}, catalogue, complete));
  // What is kept and passed on is the plan as it is written out.
  constexpr size_t kNeverTooLong = kMaxPlanBytes / 8;
  if (text.size() > kNeverTooLong) {
    const size_t written = WritePlan(*checked.plan).size();
    if (written > kMaxPlanBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(file_name, ":1: plan: written out it has ", written,
                       " bytes; allowed: at most ", kMaxPlanBytes));
    }
  }
  return checked;
}

absl::StatusOr<core::RunPlan> ReadPlan(const YamlNode& root,
                                       absl::string_view file_name,
                                       const PlanSurroundings& around,
                                       const core::Catalogue& catalogue) {
  DFL_ASSIGN_OR_RETURN(
      const core::CheckedPlan checked,
      Read(root, file_name, around, catalogue, [](core::RunPlan&) {}));
  return *checked.plan;
}

std::string WritePlan(const core::RunPlan& plan) {
  PlanWriter out;
  WriteKeys(PlanTable(), plan, 0, out);
  return out.Take();
}

}  // namespace dfl::config

#include "daemon/control/member_selection.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/names.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

constexpr int kMaxNames = 4096;
constexpr int kMaxLabels = 64;
// Of what a caller sent, in the text of an error.
constexpr size_t kMaxQuotedBytes = 100;

std::string Quoted(absl::string_view text) {
  return absl::StrCat("\"", text.substr(0, kMaxQuotedBytes), "\"");
}

absl::Status NoSuch(absl::string_view what, absl::string_view name,
                    const std::vector<std::string>& known,
                    absl::string_view list_with) {
  const std::string nearest = NearestName(name, known);
  return absl::NotFoundError(absl::StrCat(
      "no member ", what, " ", Quoted(name), "; ",
      nearest.empty() ? "" : absl::StrCat("did you mean ", nearest, "? "),
      list_with));
}

absl::Status CheckSizes(const pb::MemberSelection& selection) {
  if (selection.nodes_size() <= kMaxNames &&
      selection.labels_size() <= kMaxLabels) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the selection has ", selection.nodes_size(), " names and ",
                   selection.labels_size(), " labels; allowed: up to ",
                   kMaxNames, " and ", kMaxLabels));
}

std::vector<std::string> LabelsOf(const MemberInfo& member) {
  std::vector<std::string> labels;
  for (const auto& [key, value] : member.labels) {
    labels.push_back(absl::StrCat(key, "=", value));
  }
  return labels;
}

// Whether every name and label means somebody.
absl::Status CheckKnown(const std::vector<MemberInfo>& members,
                        const pb::MemberSelection& selection) {
  std::set<std::string> names;
  std::set<std::string> labels;
  for (const MemberInfo& member : members) {
    names.insert(member.node.name());
    for (std::string& label : LabelsOf(member)) labels.insert(std::move(label));
  }
  for (const std::string& name : selection.nodes()) {
    if (names.count(name) > 0) continue;
    return NoSuch("is named", name, {names.begin(), names.end()},
                  "`dflctl node list` shows all members");
  }
  for (const std::string& label : selection.labels()) {
    const size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", Quoted(label),
                       ": allowed is KEY=VALUE, such as site=north"));
    }
    if (labels.count(label) > 0) continue;
    return NoSuch("has the label", label, {labels.begin(), labels.end()},
                  "`dflctl node list -o wide` shows the labels of all");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<SelectedMember>> SelectMembers(
    const std::vector<MemberInfo>& members,
    const pb::MemberSelection& selection) {
  absl::Status checked = CheckSizes(selection);
  if (checked.ok()) checked = CheckKnown(members, selection);
  if (!checked.ok()) return checked;
  const std::set<std::string> names(selection.nodes().begin(),
                                    selection.nodes().end());
  const std::set<std::string> labels(selection.labels().begin(),
                                     selection.labels().end());
  const bool all = names.empty() && labels.empty();
  std::vector<SelectedMember> selected;
  for (const MemberInfo& member : members) {
    const bool by_name = names.count(member.node.name()) > 0;
    bool chosen = all || by_name;
    for (const std::string& label : LabelsOf(member)) {
      chosen = chosen || labels.count(label) > 0;
    }
    if (chosen) selected.push_back({member, by_name});
  }
  return selected;
}

}  // namespace dfl::control

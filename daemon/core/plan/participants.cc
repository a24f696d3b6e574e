#include "daemon/core/plan/participants.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/ids.h"
#include "daemon/core/plan/plan_network.h"
#include "daemon/core/plan/plan_warnings.h"

namespace dfl::core {
namespace {

using Kind = ParticipantsSpec::Kind;

bool ByName(const MemberSpec& a, const MemberSpec& b) {
  return a.node < b.node;
}

bool MayTakePart(const MemberSpec& member, bool mixes_without_data) {
  return member.participation == Participation::kTrain ||
         (member.participation == Participation::kMix && mixes_without_data);
}

bool MixesWithoutData(const RunPlan& plan, const Catalogue& catalogue) {
  const absl::StatusOr<const AlgorithmInfo*> algorithm =
      catalogue.Find(plan.algorithm.name);
  return algorithm.ok() && (*algorithm)->mixes_without_data;
}

// What the plan leaves open of those that it names.
void FillIn(RunPlan& plan, absl::Span<const MemberSpec> present) {
  std::map<NodeId, const MemberSpec*> there;
  for (const MemberSpec& member : present) there[member.node] = &member;
  for (MemberSpec& member : plan.members) {
    const auto found = there.find(member.node);
    if (found == there.end()) continue;
    member.participation = found->second->participation;
    if (member.participation != Participation::kTrain) {
      member.rows = 0;  // what it has, it does not train on
    } else if (member.rows == 0) {
      member.rows = found->second->rows;
    }
    member.dialable = found->second->dialable;
    member.labels = found->second->labels;
  }
}

// The first names, and how many more.
std::string NamesText(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  return absl::StrCat(
      absl::StrJoin(absl::MakeConstSpan(names).first(shown), ", "),
      shown < names.size()
          ? absl::StrCat(" and ", names.size() - shown, " more")
          : "");
}

using NameSet = std::set<absl::string_view>;

NameSet NamesOf(absl::Span<const MemberSpec> members) {
  NameSet names;
  for (const MemberSpec& member : members) names.insert(member.node.name());
  return names;
}

// What selectors can say of a member: its name, and its labels.
std::vector<std::string> SelectorsOf(const MemberSpec& member) {
  std::vector<std::string> all = {member.node.name()};
  for (const auto& [key, value] : member.labels) {
    all.push_back(absl::StrCat(key, "=", value));
  }
  return all;
}

bool IsChosen(const NameSet& selectors, const MemberSpec& member) {
  const std::vector<std::string> own = SelectorsOf(member);
  return std::any_of(own.begin(), own.end(),
                     [&selectors](const std::string& selector) {
                       return selectors.count(selector) > 0;
                     });
}

// Returns how many of a fixed set are not there.
size_t WarnOfMissing(const RunPlan& plan, absl::Span<const MemberSpec> present,
                     std::vector<std::string>& warnings) {
  const NameSet there = NamesOf(present);
  std::vector<std::string> missing;
  for (const MemberSpec& member : plan.members) {
    if (there.count(member.node.name()) == 0) {
      missing.push_back(member.node.name());
    }
  }
  if (missing.empty()) return 0;
  warnings.push_back(absl::StrCat(
      "participants.fixed: not in the network now: ", NamesText(missing),
      "; the others go on without ", missing.size() == 1 ? "it" : "them"));
  return missing.size();
}

// Of a fixed set, which no node can be left out of.
void WarnOfIdleInSet(const RunPlan& plan, absl::Span<const MemberSpec> present,
                     const Catalogue& catalogue,
                     std::vector<std::string>& warnings) {
  const bool mixes = MixesWithoutData(plan, catalogue);
  const NameSet named = NamesOf(plan.members);
  std::vector<std::string> idle;
  for (const MemberSpec& there : present) {
    if (named.count(there.node.name()) > 0 && !MayTakePart(there, mixes)) {
      idle.push_back(there.node.name());
    }
  }
  if (idle.empty()) return;
  warnings.push_back(
      absl::StrCat("participants.fixed: ", NamesText(idle),
                   idle.size() == 1 ? " says" : " say", " that ",
                   idle.size() == 1 ? "it does" : "they do",
                   " not train (participation:), and ", plan.algorithm.name,
                   " has no use for a node without data: leave ",
                   idle.size() == 1 ? "it" : "them", " out of the set"));
}

// The first ones one by one.
void WarnOfSelectors(const RunPlan& plan, absl::Span<const MemberSpec> present,
                     std::vector<std::string>& warnings) {
  constexpr size_t kMostWarnings = 10;
  std::set<std::string> known;
  for (const MemberSpec& member : present) {
    for (std::string& own : SelectorsOf(member)) known.insert(std::move(own));
  }
  size_t count = 0;
  for (const std::string& selector : plan.participants.selectors) {
    if (known.count(selector) > 0 || ++count > kMostWarnings) continue;
    warnings.push_back(absl::StrCat("participants: \"", selector,
                                    "\" names nobody who is there now"));
  }
  if (count > kMostWarnings) {
    warnings.push_back(absl::StrCat("participants: ", count - kMostWarnings,
                                    " more name nobody who is there now"));
  }
}

// Those who would mix, and have nothing to do under the plan's algorithm.
void WarnOfIdle(const RunPlan& plan, absl::Span<const MemberSpec> present,
                const Catalogue& catalogue,
                std::vector<std::string>& warnings) {
  if (MixesWithoutData(plan, catalogue)) return;
  std::vector<std::string> idle;
  for (const MemberSpec& member : present) {
    if (member.participation == Participation::kMix) {
      idle.push_back(member.node.name());
    }
  }
  if (idle.empty()) return;
  warnings.push_back(
      absl::StrCat("algorithm.name: ", plan.algorithm.name,
                   " has no use for nodes without data, so these only watch: ",
                   NamesText(idle)));
}

}  // namespace

absl::Status CheckSelector(absl::string_view selector) {
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(selector, absl::MaxSplits('=', 1));
  absl::Status status = ValidateNodeName(halves.first);
  if (status.ok() && selector.find('=') != absl::string_view::npos) {
    status = ValidateNodeName(halves.second);
  }
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", selector,
                   "\" is neither the name of a node nor a label such as "
                   "site=north: ",
                   status.message()));
}

absl::Status CheckParticipants(const RunPlan& plan) {
  const std::vector<std::string>& selectors = plan.participants.selectors;
  if (plan.participants.kind == Kind::kSelected && selectors.empty()) {
    return absl::InvalidArgumentError(
        "participants: the list is empty; name nodes or labels such as "
        "site=north, or write all");
  }
  for (size_t i = 0; i < selectors.size(); ++i) {
    const std::string key = absl::StrCat("participants[", i, "]: ");
    const absl::Status status = CheckSelector(selectors[i]);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(key, status.message()));
    }
    if (i > 0 && selectors[i] <= selectors[i - 1]) {
      return absl::InvalidArgumentError(absl::StrCat(
          key, "\"", selectors[i], "\" comes after \"", selectors[i - 1],
          "\"; selectors must be sorted bytewise, each once"));
    }
  }
  if (FollowsView(plan) && plan.topology.weights == "explicit") {
    return absl::InvalidArgumentError(
        "topology.weights: \"explicit\" has a row for each member, so it needs "
        "a set of members that stays; allowed: participants: {fixed: [...]}, "
        "or another rule");
  }
  return absl::OkStatus();
}

void ResolveParticipants(RunPlan& plan, absl::Span<const MemberSpec> present,
                         const Catalogue& catalogue) {
  if (!FollowsView(plan)) {
    FillIn(plan, present);
    return;
  }
  const NameSet selectors(plan.participants.selectors.begin(),
                          plan.participants.selectors.end());
  const bool mixes = MixesWithoutData(plan, catalogue);
  plan.members.clear();
  for (const MemberSpec& member : present) {
    const bool chosen =
        plan.participants.kind == Kind::kAll || IsChosen(selectors, member);
    if (!chosen || !MayTakePart(member, mixes)) continue;
    plan.members.push_back(member);
    // What it has, it does not train on.
    if (member.participation == Participation::kMix) {
      plan.members.back().rows = 0;
    }
  }
  std::sort(plan.members.begin(), plan.members.end(), ByName);
}

std::string ParticipantsText(const RunPlan& plan) {
  if (plan.participants.kind == Kind::kAll) return "all";
  if (plan.participants.kind == Kind::kSelected) {
    return NamesText(plan.participants.selectors);
  }
  std::vector<std::string> names;
  for (const MemberSpec& member : plan.members) {
    names.push_back(member.node.name());
  }
  return absl::StrCat("the fixed set ", NamesText(names));
}

std::vector<std::string> ViewWarnings(const CheckedPlan& checked,
                                      absl::Span<const MemberSpec> present,
                                      const Catalogue& catalogue) {
  std::vector<std::string> warnings;
  RunPlan plan = *checked.plan;
  const bool fixed = !FollowsView(plan);
  if (fixed) {
    WarnOfIdleInSet(plan, present, catalogue, warnings);
    const size_t missing = WarnOfMissing(plan, present, warnings);
    if (missing == 0 || missing == plan.members.size()) return warnings;
    // The graph of those who are there.
    plan.participants.kind = Kind::kSelected;
    for (const MemberSpec& member : plan.members) {
      plan.participants.selectors.push_back(member.node.name());
    }
  } else {
    WarnOfSelectors(plan, present, warnings);
    WarnOfIdle(plan, present, catalogue, warnings);
    if (!plan.members.empty()) return warnings;  // PlanWarnings looks at it
  }
  ResolveParticipants(plan, present, catalogue);
  if (plan.members.empty()) {
    warnings.push_back(absl::StrCat(
        "participants: nobody who is there now takes part (",
        ParticipantsText(plan), "); the plan waits for the first one"));
    return warnings;
  }
  for (const std::string& text : ConnectionWarnings(plan, *checked.algorithm)) {
    warnings.push_back(
        absl::StrCat(text, fixed ? " (of those who are there)" : ""));
  }
  return warnings;
}

}  // namespace dfl::core

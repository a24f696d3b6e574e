#include "daemon/app/service/reload.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/check.h"

namespace dfl::app {
namespace {

// What Tree's PutInForce (tree.h) hands to the running parts.
constexpr absl::string_view kReloadable[] = {
    "compute.frozen_after", "labels", "log.level", "peers"};

}  // namespace

bool IsReloadable(absl::string_view key) {
  return std::find(std::begin(kReloadable), std::end(kReloadable), key) !=
         std::end(kReloadable);
}

SettingChanges CompareSettings(
    const std::vector<config::EffectiveSetting>& in_force,
    const std::vector<config::EffectiveSetting>& read) {
  DFL_CHECK(in_force.size() == read.size());
  SettingChanges changes;
  for (size_t i = 0; i < read.size(); ++i) {
    const bool differs = in_force[i].value != read[i].value;
    const bool waits = differs && !IsReloadable(read[i].key);
    if (differs) (waits ? changes.later : changes.now).push_back(read[i].key);
    changes.effective.push_back(waits ? in_force[i] : read[i]);
  }
  return changes;
}

std::string Describe(const SettingChanges& changes) {
  if (changes.now.empty() && changes.later.empty()) {
    return "the settings are as before";
  }
  std::vector<std::string> parts;
  if (!changes.now.empty()) {
    parts.push_back(
        absl::StrCat("in force: ", absl::StrJoin(changes.now, ", ")));
  }
  if (!changes.later.empty()) {
    parts.push_back(
        absl::StrCat("after a restart: ", absl::StrJoin(changes.later, ", ")));
  }
  return absl::StrJoin(parts, "; ");
}

}  // namespace dfl::app

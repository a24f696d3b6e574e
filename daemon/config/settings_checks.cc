#include "daemon/config/settings_checks.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/ids.h"
#include "daemon/config/settings_table.h"
#include "daemon/data/load.h"
#include "daemon/data/partition.h"

namespace dfl::config {

std::string SettingsChecks::Origin(const std::string& key) const {
  const auto found = origins_.find(key);
  return found == origins_.end() ? "" : found->second;
}

void SettingsChecks::Run() {
  const absl::Status name = ValidateNodeName(settings_.name);
  if (!name.ok() && Origin("name") == "default" && broken_.count("name") == 0) {
    mistakes_.Add(absl::StrCat("default: name: found the host's name ",
                               Quoted(settings_.name), ": ", name.message(),
                               "; allowed: ", FindSetting("name")->allowed,
                               "; set name"));
  }
  CheckReach();
  if (settings_.publish.when == PublishSettings::When::kBest &&
      settings_.data.test_paths.empty() &&
      broken_.count("data.test.paths") == 0) {
    mistakes_.Add(absl::StrCat(
        Origin("model.publish.when"),
        ": model.publish.when: found best; allowed: steps, for there are no "
        "data.test.paths to evaluate on"));
  }
  const data::PartitionSpec& partition = settings_.data.partition;
  if (broken_.count("data.partition.index") == 0 &&
      broken_.count("data.partition.count") == 0 &&
      partition.index >= partition.count) {
    mistakes_.Add(absl::StrCat(
        Origin("data.partition.index"), ": data.partition.index: found ",
        partition.index, "; allowed: 0 to ", partition.count - 1,
        " (data.partition.count is ", partition.count, ", ",
        Origin("data.partition.count"), ")"));
  }
  if (AnyBroken("data.")) return;
  CheckExplicitPartition();
  CheckStandardise();
  if (!settings_.data.train_paths.empty()) {
    CheckData(settings_.data.TrainSpec(), "data.train");
  }
  if (!settings_.data.test_paths.empty()) {
    CheckData(settings_.data.TestSpec(), "data.test");
  }
}

void SettingsChecks::CheckReach() {
  if (settings_.discovery.mdns.value_or(false) && settings_.cluster.empty() &&
      broken_.count("cluster") == 0) {
    mistakes_.Add(absl::StrCat(
        Origin("discovery.mdns"),
        ": discovery.mdns: found on; allowed: beside cluster, which says whom "
        "of those on the local network this node looks for"));
  }
  const PeerSettings& peer = settings_.peer;
  if (broken_.count("peer.listen") != 0 || AnyBroken("peer.advertise")) return;
  if (peer.dialable == true && peer.listen.empty() && peer.advertise.empty()) {
    mistakes_.Add(absl::StrCat(
        Origin("peer.dialable"),
        ": peer.dialable: found on; allowed: beside peer.listen, which is "
        "empty (",
        Origin("peer.listen"), "), or peer.advertise"));
  }
  if (peer.dialable == false && !peer.advertise.empty()) {
    mistakes_.Add(absl::StrCat(
        Origin("peer.advertise"), ": peer.advertise: found ",
        Quoted(peer.advertise), "; allowed: \"\" beside peer.dialable: off (",
        Origin("peer.dialable"), ")"));
  }
}

void SettingsChecks::CheckExplicitPartition() {
  const data::PartitionSpec& partition = settings_.data.partition;
  if (partition.kind != "explicit" || partition.index >= partition.count) {
    return;
  }
  const absl::Status status = data::CheckPartition(partition);
  if (status.ok()) return;
  // "partition.sizes: ...", or of one of them, "partition.sizes[2]: ...".
  const std::string key = absl::StrCat(
      "data.",
      status.message().substr(0, status.message().find_first_of("[:")));
  mistakes_.Add(
      absl::StrCat(Origin(key), ": ", shown_("data."), status.message()));
}

void SettingsChecks::CheckStandardise() {
  const StandardiseSettings& standardise = settings_.data.standardise;
  if (standardise.mean.size() != standardise.std.size()) {
    mistakes_.Add(absl::StrCat(
        Origin("data.standardise.std"), ": ", shown_("data.standardise.std"),
        ": found ", standardise.std.size(), " numbers; allowed: as many as in ",
        shown_("data.standardise.mean"), ", ", standardise.mean.size(), " (",
        Origin("data.standardise.mean"), ")"));
  }
  if (standardise.over == StandardiseSettings::Over::kNetwork &&
      standardise.per == StandardiseSettings::Per::kNone) {
    mistakes_.Add(absl::StrCat(
        Origin("data.standardise.over"), ": ", shown_("data.standardise.over"),
        ": found network; allowed: beside ", shown_("data.standardise.per"),
        ": all, channel or feature, which is none (",
        Origin("data.standardise.per"), ")"));
  }
  std::vector<std::string> given;
  if (standardise.per != StandardiseSettings::Per::kNone) {
    given.push_back("data.standardise.per");
  }
  if (!standardise.mean.empty()) given.push_back("data.standardise.mean");
  if (!standardise.file.empty()) given.push_back("data.standardise.file");
  if (given.size() > 1) {
    mistakes_.Add(absl::StrCat(Origin(given[1]), ": ", shown_(given[1]),
                               ": found beside ", shown_(given[0]), " (",
                               Origin(given[0]),
                               "); allowed: one of per, mean with std, and "
                               "file"));
  }
}

// The data room's message is "data FIELD: what was found; allowed: ...".
void SettingsChecks::CheckData(const data::DataSpec& spec,
                               absl::string_view set) {
  const absl::Status status = data::ValidateSpec(spec);
  if (status.ok()) return;
  absl::string_view message = status.message();
  std::string key = absl::StrCat(set, ".paths");
  if (absl::ConsumePrefix(&message, "data ")) {
    const size_t colon = message.find(':');
    const std::string field(message.substr(0, colon));
    for (const std::string& candidate :
         {absl::StrCat(set, ".", field), absl::StrCat("data.", field)}) {
      if (FindSetting(candidate) == nullptr) continue;
      key = candidate;
      message.remove_prefix(std::min(message.size(), colon + 2));
      break;
    }
  }
  const std::string text =
      absl::StrCat(Origin(key), ": ", shown_(key), ": ", message);
  // Both sets share the format; report a mistake in it once.
  if (told_.insert(text).second) mistakes_.Add(text);
}

bool SettingsChecks::AnyBroken(absl::string_view prefix) const {
  return std::any_of(broken_.begin(), broken_.end(),
                     [prefix](const std::string& key) {
                       return absl::StartsWith(key, prefix);
                     });
}

}  // namespace dfl::config

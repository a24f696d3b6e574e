// Settings that change while the daemon runs: which it takes up at once, and
// which wait for a restart.
#ifndef DFL_APP_SERVICE_RELOAD_H_
#define DFL_APP_SERVICE_RELOAD_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/config/node_settings.h"

namespace dfl::app {

// Whether a changed value of this setting is taken up by a reload.
bool IsReloadable(absl::string_view key);

// What a reload of settings comes to.
struct SettingChanges {
  std::vector<std::string> now;    // keys that change at once
  std::vector<std::string> later;  // keys that wait for a restart
  // All keys as they are in force afterwards, with their origins.
  std::vector<config::EffectiveSetting> effective;
};

// Both hold every key, in the table's order. A secret shows as "(hidden)" in
// both, so that its change is not seen.
SettingChanges CompareSettings(
    const std::vector<config::EffectiveSetting>& in_force,
    const std::vector<config::EffectiveSetting>& read);

// "in force: log.level, peers; after a restart: data.format".
std::string Describe(const SettingChanges& changes);

}  // namespace dfl::app

#endif  // DFL_APP_SERVICE_RELOAD_H_

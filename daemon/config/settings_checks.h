// What must hold between settings that are each well-formed. Room-internal.
#ifndef DFL_CONFIG_SETTINGS_CHECKS_H_
#define DFL_CONFIG_SETTINGS_CHECKS_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "daemon/config/node_settings.h"
#include "daemon/config/values.h"
#include "daemon/data/data_spec.h"

namespace dfl::config {

class SettingsChecks {
 public:
  // The key as errors call it.
  using ShownKey = std::function<std::string(absl::string_view key)>;

  // `origins` says of every key where its value comes from. `broken` are the
  // keys whose value was refused; what depends on them is not checked.
  SettingsChecks(const NodeSettings& settings,
                 const std::map<std::string, std::string>& origins,
                 const std::set<std::string>& broken, ShownKey shown,
                 Mistakes& mistakes)
      : settings_(settings),
        origins_(origins),
        broken_(broken),
        shown_(std::move(shown)),
        mistakes_(mistakes) {}

  // Notes the mistakes, a line each: ORIGIN: KEY: found VALUE; allowed: ...
  void Run();

 private:
  std::string Origin(const std::string& key) const;
  bool AnyBroken(absl::string_view prefix) const;
  // Whether others can find and dial this node.
  void CheckReach();
  // The other kinds of partition are complete as they are.
  void CheckExplicitPartition();
  void CheckStandardise();
  // Has the data room look at what it can check without opening files. `set`
  // is "data.train" or "data.test".
  void CheckData(const data::DataSpec& spec, absl::string_view set);

  const NodeSettings& settings_;
  const std::map<std::string, std::string>& origins_;
  const std::set<std::string>& broken_;
  const ShownKey shown_;
  Mistakes& mistakes_;
  std::set<std::string> told_;  // about the format that both sets share
};

}  // namespace dfl::config

#endif  // DFL_CONFIG_SETTINGS_CHECKS_H_

// The one declaration of every node setting. The file's parser, environment
// variables, flags, `dfld --help`, `config show` and the sample configuration
// all read this table, so they always agree.
#ifndef DFL_CONFIG_SETTINGS_TABLE_H_
#define DFL_CONFIG_SETTINGS_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/config/node_settings.h"

namespace dfl::config {

// A value as found in a source, before its type is known.
struct RawValue {
  bool is_list = false;
  std::string text;                // of a single value
  std::vector<std::string> items;  // of a list
};

struct Setting {
  std::string key;      // "control.socket"
  std::string unit;     // "bytes"; "" when it has none
  std::string allowed;  // "tls or insecure"
  std::string help;     // one sentence or more
  // What is shown as the default if it depends on the machine; else "".
  std::string default_note;
  bool is_list = false;
  // In a file also "{key: value}", which is the list "key=value".
  bool is_map = false;
  bool is_flag = false;    // on or off: as a flag it may stand without a value
  bool is_secret = false;  // never shown or quoted

  // Parses `value` into its place.
  // Errors: INVALID_ARGUMENT, which changes nothing; the message is "" or says
  // why this value is not allowed.
  std::function<absl::Status(const RawValue& value, NodeSettings& settings)>
      set;
  // The value as it would stand in a file.
  std::function<std::string(const NodeSettings& settings)> get;
};

// A heading of keys: "control" is the section of "control.socket".
struct SettingSection {
  std::string prefix;
  std::string help;
};

// All settings, keys of one section in a row.
absl::Span<const Setting> SettingsTable();
absl::Span<const SettingSection> SettingSections();

// Null when there is none.
const Setting* FindSetting(absl::string_view key);

// "control.socket" -> "DFLD_CONTROL_SOCKET".
std::string EnvironmentName(absl::string_view key);

}  // namespace dfl::config

#endif  // DFL_CONFIG_SETTINGS_TABLE_H_

// The command line of dfld: where to find the configuration, what to do with
// it, and --KEY=VALUE for every setting.
//
//   dfld [--config FILE] [--conf-d DIR] [--ready-file FILE] [--check]
//        [--help] [--version] [--KEY=VALUE | --KEY VALUE]...
#ifndef DFL_CONFIG_DAEMON_COMMAND_LINE_H_
#define DFL_CONFIG_DAEMON_COMMAND_LINE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/node_settings.h"

namespace dfl::config {

inline constexpr char kDefaultConfigFile[] = "/etc/dfld/dfld.yaml";
inline constexpr char kDefaultConfigFolder[] = "/etc/dfld/conf.d";

struct DaemonCommandLine {
  // --config or DFLD_CONFIG; "": the default one, if it is there.
  std::string config_file;
  // --conf-d or DFLD_CONF_D; "": the default one, if it is there and no file
  // was named either.
  std::string config_folder;
  std::string ready_file;  // --ready-file or DFLD_READY_FILE; "": none
  bool check = false;      // check the configuration, then exit
  bool help = false;
  bool version = false;
  // (key, text) of the settings given as flags, in order.
  std::vector<std::pair<std::string, std::string>> settings;
};

// A flag of a list may be repeated; its values add up. A flag of an on/off
// setting may stand alone and then means on.
// Errors: INVALID_ARGUMENT names an unknown flag with the nearest known one, a
// flag without its value, or an argument that is no flag (exit code 2).
// `environment` gives the paths that no flag gives.
absl::StatusOr<DaemonCommandLine> ParseDaemonCommandLine(
    int argc, const char* const* argv,
    const std::map<std::string, std::string>& environment);

// The text of --help: how to call it, every setting with its default, and an
// example.
std::string DaemonHelp();

// Reads what `line` names: the configuration file, *.yaml of
// the folder in order of names, the host's name and whether we are root.
// Errors: NOT_FOUND when a file or folder that was named is not there;
// PERMISSION_DENIED; INVALID_ARGUMENT when a file is larger than 1 MiB.
absl::StatusOr<SettingsSources> GatherSources(
    const DaemonCommandLine& line,
    const std::map<std::string, std::string>& environment);

// The process's environment as a map.
std::map<std::string, std::string> ProcessEnvironment();

// A text file of at most `max_bytes`.
// Errors: as GatherSources.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         size_t max_bytes);

}  // namespace dfl::config

#endif  // DFL_CONFIG_DAEMON_COMMAND_LINE_H_

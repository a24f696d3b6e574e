// The command line of dfld: where to find the configuration, what to do with
// it, and --KEY=VALUE for every setting.
//
//   dfld [--config FILE] [--conf-d DIR] [--ready-file FILE] [--check]
//        [--help] [--version] [--KEY=VALUE | --KEY VALUE]...
//
// dfld join and dfld data are commands of their own: daemon/app/join_command.h,
// data_command.h.
#ifndef DFL_CONFIG_DAEMON_COMMAND_LINE_H_
#define DFL_CONFIG_DAEMON_COMMAND_LINE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/node_settings.h"

namespace dfl::config {

// In the folder of settings that systemd gives, or else here.
inline constexpr char kDefaultConfigFile[] = "/etc/dfld/dfld.yaml";
inline constexpr char kDefaultConfigFolder[] = "/etc/dfld/conf.d";

struct DaemonCommandLine {
  // --config or DFLD_CONFIG; "": the default file, if it exists.
  std::string config_file;
  // --conf-d or DFLD_CONF_D; "": the default folder, if it exists and no file
  // was named.
  std::string config_folder;
  std::string ready_file;  // --ready-file or DFLD_READY_FILE; "": none
  bool check = false;      // check the configuration, then exit
  bool help = false;
  bool version = false;
  // (key, text) of the settings given as flags, in order.
  std::vector<std::pair<std::string, std::string>> settings;
};

// The flag of a list may be repeated, which adds values. The flag of an on/off
// setting may have no value and then means on. `environment` gives the paths
// that no flag gives.
// Errors: INVALID_ARGUMENT names an unknown flag with the nearest known one, a
// flag without its value, or an argument that is no flag (exit code 2).
absl::StatusOr<DaemonCommandLine> ParseDaemonCommandLine(
    int argc, const char* const* argv,
    const std::map<std::string, std::string>& environment);

// The text of --help: how to call it, every setting with its default, and an
// example.
std::string DaemonHelp();

// Reads what `line` names: the configuration file, and *.yaml of the folder in
// the order of their names. Finds out the host's name and whether we are root.
// Errors: NOT_FOUND when a named file or folder does not exist;
// PERMISSION_DENIED; INVALID_ARGUMENT when a file is larger than 1 MiB.
absl::StatusOr<SettingsSources> GatherSources(
    const DaemonCommandLine& line,
    const std::map<std::string, std::string>& environment);

// The process's environment as a map.
std::map<std::string, std::string> ProcessEnvironment();

// Reads a text file of at most `max_bytes`.
// Errors: as GatherSources.
absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         size_t max_bytes);

}  // namespace dfl::config

#endif  // DFL_CONFIG_DAEMON_COMMAND_LINE_H_

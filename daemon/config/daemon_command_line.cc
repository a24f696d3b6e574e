#include "daemon/config/daemon_command_line.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/config/default_places.h"
#include "daemon/config/settings_table.h"
#include "daemon/config/values.h"
#include "daemon/core/algorithm/knobs.h"

namespace dfl::config {
namespace {

constexpr size_t kMaxConfigBytes = size_t{1} << 20;
// In the folder of settings.
constexpr char kConfigFile[] = "dfld.yaml";
constexpr char kConfigFolder[] = "conf.d";

absl::Status SystemError(const std::string& path) {
  const int code = errno;
  const std::string text =
      absl::StrCat(path, ": ", std::strerror(code),
                   "; allowed: a path to what is there and this user may read");
  if (code == ENOENT || code == ENOTDIR) return absl::NotFoundError(text);
  if (code == EACCES || code == EPERM) {
    return absl::PermissionDeniedError(text);
  }
  return absl::UnavailableError(text);
}

// Names of all flags that are no settings.
const char* const kOwnFlags[] = {"config", "conf-d", "ready-file",
                                 "check",  "help",   "version"};

absl::Status UnknownFlag(absl::string_view name) {
  std::vector<std::string> known(std::begin(kOwnFlags), std::end(kOwnFlags));
  for (const Setting& setting : SettingsTable()) known.push_back(setting.key);
  const std::string nearest = NearestName(name, known);
  return absl::InvalidArgumentError(absl::StrCat(
      "flag --", name, ": unknown; ",
      nearest.empty() ? "dfld --help lists all flags"
                      : absl::StrCat("did you mean --", nearest, "?")));
}

// *.yaml and *.yml of `folder`, sorted by name.
absl::StatusOr<std::vector<std::string>> YamlFilesOf(
    const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()),
                                                 &closedir);
  if (open == nullptr) return SystemError(folder);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(open.get())) {
    const absl::string_view name = entry->d_name;
    if (absl::StartsWith(name, ".")) continue;
    if (absl::EndsWith(name, ".yaml") || absl::EndsWith(name, ".yml")) {
      names.push_back(absl::StrCat(folder, "/", name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// `path`, or what the environment says where no flag did.
void OrVariable(std::string& path, const char* name,
                const std::map<std::string, std::string>& environment) {
  if (!path.empty()) return;
  const auto found = environment.find(name);
  if (found != environment.end()) path = found->second;
}

// `text` wrapped to 80 columns behind `indent`.
std::string Wrapped(absl::string_view text, size_t indent) {
  std::string out;
  std::string line(indent, ' ');
  bool empty = true;
  for (const absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!empty && line.size() + 1 + word.size() > 80) {
      absl::StrAppend(&out, line, "\n");
      line = std::string(indent, ' ');
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  absl::StrAppend(&out, line, "\n");
  return out;
}

}  // namespace

absl::StatusOr<DaemonCommandLine> ParseDaemonCommandLine(
    int argc, const char* const* argv,
    const std::map<std::string, std::string>& environment) {
  DaemonCommandLine line;
  for (int i = 1; i < argc; ++i) {
    absl::string_view argument = argv[i];
    if (argument == "-h") argument = "--help";
    if (!absl::ConsumePrefix(&argument, "--") || argument.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument ", Quoted(argv[i]),
                       ": not a flag; allowed: --KEY=VALUE, see dfld --help"));
    }
    const size_t equals = argument.find('=');
    const std::string name(argument.substr(0, equals));
    const bool has_value = equals != absl::string_view::npos;
    std::string value(has_value ? argument.substr(equals + 1) : "");

    bool* const toggle = name == "check"     ? &line.check
                         : name == "help"    ? &line.help
                         : name == "version" ? &line.version
                                             : nullptr;
    if (toggle != nullptr) {
      if (has_value) {
        return absl::InvalidArgumentError(absl::StrCat(
            "flag --", name, ": takes no value, found ", Quoted(value)));
      }
      *toggle = true;
      continue;
    }
    std::string* const path = name == "config"       ? &line.config_file
                              : name == "conf-d"     ? &line.config_folder
                              : name == "ready-file" ? &line.ready_file
                                                     : nullptr;
    const Setting* const setting = FindSetting(name);
    if (path == nullptr && setting == nullptr) return UnknownFlag(name);
    if (!has_value) {
      if (setting != nullptr && setting->is_flag) {
        value = "on";
      } else if (i + 1 < argc) {
        value = argv[++i];
      } else {
        return absl::InvalidArgumentError(
            absl::StrCat("flag --", name, ": its value is missing; allowed: ",
                         setting != nullptr ? setting->allowed : "a path"));
      }
    }
    if (path != nullptr) {
      if (value.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("flag --", name, ": found \"\"; allowed: a path"));
      }
      *path = value;
    } else {
      line.settings.emplace_back(name, value);
    }
  }
  OrVariable(line.config_file, "DFLD_CONFIG", environment);
  OrVariable(line.config_folder, "DFLD_CONF_D", environment);
  OrVariable(line.ready_file, "DFLD_READY_FILE", environment);
  return line;
}

std::string DaemonHelp() {
  std::string out = absl::StrCat(
      "dfld: a node of decentralised learning. Steered by dflctl.\n"
      "\n"
      "Usage: dfld [--config FILE] [--conf-d DIR] [--KEY=VALUE]...\n"
      "       dfld join TOKEN --at HOST:PORT   gets this node's certificate; "
      "see\n"
      "                                        dfld join --help\n"
      "       dfld data FILE...                guesses the settings that read "
      "these\n"
      "                                        files; see dfld data --help\n"
      "\n"
      "  --config FILE      settings; default ",
      kDefaultConfigFile,
      " if it is there\n"
      "                     (variable DFLD_CONFIG)\n"
      "  --conf-d DIR       *.yaml in it go over FILE, in order of names; "
      "default\n"
      "                     ",
      kDefaultConfigFolder,
      " if it is there (DFLD_CONF_D)\n"
      "  --ready-file FILE  write the bound addresses there once listening\n"
      "                     (DFLD_READY_FILE)\n"
      "  --check            check the configuration, read the data and say "
      "what was\n"
      "                     understood; with run.plan, try the model; then "
      "exit\n"
      "  --help, --version\n"
      "\n"
      "Exit codes: 0 ok, 1 failed, 2 usage, 78 configuration.\n"
      "\n"
      "Settings. control.socket is the flag --control.socket=..., the "
      "variable\n"
      "DFLD_CONTROL_SOCKET and, in the file, socket in the section control. "
      "Precedence:\n"
      "flag, environment, conf.d, file. Lists are written a,b.\n");
  const NodeSettings defaults;
  for (const Setting& setting : SettingsTable()) {
    absl::StrAppend(&out, "\n  --", setting.key, "\n", Wrapped(setting.help, 6),
                    Wrapped(absl::StrCat("Allowed: ", setting.allowed, "."), 6),
                    Wrapped(absl::StrCat("Default: ",
                                         setting.default_note.empty()
                                             ? setting.get(defaults)
                                             : setting.default_note,
                                         "."),
                            6));
  }
  absl::StrAppend(&out, "\nExample: dfld --config ", kDefaultConfigFile,
                  " --name=gateway-07\n");
  return out;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path,
                                         size_t max_bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return SystemError(path);
  std::string text;
  char buffer[16384];
  absl::Status status;
  for (;;) {
    const ssize_t got = read(file, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = SystemError(path);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > max_bytes) {
      status = absl::InvalidArgumentError(
          absl::StrCat(path, ": longer than ", max_bytes, " bytes"));
      break;
    }
  }
  close(file);
  if (!status.ok()) return status;
  return text;
}

absl::StatusOr<SettingsSources> GatherSources(
    const DaemonCommandLine& line,
    const std::map<std::string, std::string>& environment) {
  SettingsSources sources;
  sources.environment = environment;
  sources.flags = line.settings;
  sources.is_root = geteuid() == 0;
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) == 0) sources.host_name = host;

  const std::string home = DefaultConfigFolder(environment);
  const std::string usual_file = absl::StrCat(home, "/", kConfigFile);
  const std::string usual_folder = absl::StrCat(home, "/", kConfigFolder);
  for (const std::string& tls :
       {DefaultTlsFolder(environment, sources.is_root),
        WritableTlsFolder(environment)}) {
    if (access(absl::StrCat(tls, "/cert.pem").c_str(), F_OK) == 0) {
      sources.folders_with_certificate.insert(tls);
    }
  }
  std::vector<std::string> paths;
  std::string folder = line.config_folder;
  if (!line.config_file.empty()) {
    paths.push_back(line.config_file);
  } else {
    if (access(usual_file.c_str(), F_OK) == 0) paths.push_back(usual_file);
    if (folder.empty() && access(usual_folder.c_str(), F_OK) == 0) {
      folder = usual_folder;
    }
  }
  if (!folder.empty()) {
    DFL_ASSIGN_OR_RETURN(const std::vector<std::string> more,
                         YamlFilesOf(folder));
    paths.insert(paths.end(), more.begin(), more.end());
  }
  for (const std::string& path : paths) {
    DFL_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path, kMaxConfigBytes));
    sources.files.push_back({path, std::move(text)});
  }
  return sources;
}

std::map<std::string, std::string> ProcessEnvironment() {
  std::map<std::string, std::string> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const absl::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == absl::string_view::npos) continue;
    environment.emplace(std::string(text.substr(0, equals)),
                        std::string(text.substr(equals + 1)));
  }
  return environment;
}

}  // namespace dfl::config

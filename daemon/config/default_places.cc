#include "daemon/config/default_places.h"

#include "absl/strings/str_cat.h"
#include "daemon/config/node_settings.h"

namespace dfl::config {
namespace {

std::string Variable(const std::map<std::string, std::string>& environment,
                     const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

// The first of the folders that systemd gives in a variable.
std::string SystemdFolder(const std::map<std::string, std::string>& environment,
                          const std::string& name) {
  const std::string all = Variable(environment, name);
  return all.substr(0, all.find(':'));
}

}  // namespace

std::string DefaultStateFolder(
    const std::map<std::string, std::string>& environment, bool is_root) {
  const std::string given = SystemdFolder(environment, "STATE_DIRECTORY");
  if (!given.empty()) return given;
  if (!is_root) {
    const std::string state = Variable(environment, "XDG_STATE_HOME");
    if (!state.empty()) return absl::StrCat(state, "/dfld");
    const std::string home = Variable(environment, "HOME");
    if (!home.empty()) return absl::StrCat(home, "/.local/state/dfld");
  }
  return NodeSettings().state_dir;
}

std::string DefaultConfigFolder(
    const std::map<std::string, std::string>& environment) {
  const std::string given =
      SystemdFolder(environment, "CONFIGURATION_DIRECTORY");
  return given.empty() ? "/etc/dfld" : given;
}

std::string DefaultTlsFolder(
    const std::map<std::string, std::string>& environment, bool is_root) {
  const bool service =
      is_root || !Variable(environment, "STATE_DIRECTORY").empty();
  if (!service) {
    const std::string config = Variable(environment, "XDG_CONFIG_HOME");
    if (!config.empty()) return absl::StrCat(config, "/dfld/tls");
    const std::string home = Variable(environment, "HOME");
    if (!home.empty()) return absl::StrCat(home, "/.config/dfld/tls");
  }
  return absl::StrCat(DefaultConfigFolder(environment), "/tls");
}

std::string WritableTlsFolder(
    const std::map<std::string, std::string>& environment) {
  const std::string state = SystemdFolder(environment, "STATE_DIRECTORY");
  return state.empty() ? "" : absl::StrCat(state, "/tls");
}

std::string DefaultControlSocket(
    const std::map<std::string, std::string>& environment, bool is_root) {
  const std::string given = SystemdFolder(environment, "RUNTIME_DIRECTORY");
  if (!given.empty()) return absl::StrCat(given, "/control.sock");
  const std::string session = Variable(environment, "XDG_RUNTIME_DIR");
  if (!is_root && !session.empty()) {
    return absl::StrCat(session, "/dfld/control.sock");
  }
  return NodeSettings().control.socket;
}

std::vector<std::string> ControlSocketCandidates(
    const std::map<std::string, std::string>& environment, bool is_root) {
  std::vector<std::string> candidates = {
      DefaultControlSocket(environment, is_root)};
  const std::string service = NodeSettings().control.socket;
  if (candidates[0] != service) candidates.push_back(service);
  return candidates;
}

}  // namespace dfl::config

// Where a node's files are when nothing is set: as a service, or in a person's own
// session.
#ifndef DFL_CONFIG_DEFAULT_PLACES_H_
#define DFL_CONFIG_DEFAULT_PLACES_H_

#include <map>
#include <string>
#include <vector>

namespace dfl::config {

// What must outlive the daemon: systemd's state folder, $XDG_STATE_HOME/dfld or
// ~/.local/state/dfld of a person, else the service's.
std::string DefaultStateFolder(
    const std::map<std::string, std::string>& environment, bool is_root);

// Where dfld serves control by default, and where dflctl looks, best first:
// the session's own socket ($XDG_RUNTIME_DIR/dfld), then the service's.
std::string DefaultControlSocket(
    const std::map<std::string, std::string>& environment, bool is_root);
std::vector<std::string> ControlSocketCandidates(
    const std::map<std::string, std::string>& environment, bool is_root);

}  // namespace dfl::config

#endif  // DFL_CONFIG_DEFAULT_PLACES_H_

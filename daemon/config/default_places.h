// Where a node's files are by default: for a service, and for a user's own
// session.
#ifndef DFL_CONFIG_DEFAULT_PLACES_H_
#define DFL_CONFIG_DEFAULT_PLACES_H_

#include <map>
#include <string>
#include <vector>

namespace dfl::config {

// The folder of what must outlive the daemon: systemd's state folder, a user's
// $XDG_STATE_HOME/dfld or ~/.local/state/dfld, or else the service's.
std::string DefaultStateFolder(
    const std::map<std::string, std::string>& environment, bool is_root);

// Where a node's settings are: systemd's configuration folder, or else
// /etc/dfld.
std::string DefaultConfigFolder(
    const std::map<std::string, std::string>& environment);

// Where a node's certificate is: tls in the folder of its settings for a
// service, else $XDG_CONFIG_HOME/dfld/tls or ~/.config/dfld/tls.
std::string DefaultTlsFolder(
    const std::map<std::string, std::string>& environment, bool is_root);

// Where a service of systemd keeps the certificate that it got by itself: tls in
// its state folder; "" where systemd gives none.
std::string WritableTlsFolder(
    const std::map<std::string, std::string>& environment);

// Where dfld serves control by default, and where dflctl looks, best first:
// the session's own socket ($XDG_RUNTIME_DIR/dfld), then the service's.
std::string DefaultControlSocket(
    const std::map<std::string, std::string>& environment, bool is_root);
std::vector<std::string> ControlSocketCandidates(
    const std::map<std::string, std::string>& environment, bool is_root);

}  // namespace dfl::config

#endif  // DFL_CONFIG_DEFAULT_PLACES_H_

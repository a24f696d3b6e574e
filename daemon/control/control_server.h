// The control service: gRPC on a unix socket, and on network addresses where
// the node's settings allow it. It knows who calls, by the user on the unix
// socket and by a person's certificate on the network, and lets a call in when
// the caller has the role that control.proto asks for. It checks what comes in,
// asks Backend, and maps absl::Status to grpc::Status; what a call does is
// Backend's.
//
//   auto server = ControlServer::Start(options, backend);  // listening
//   ...
//   server.reset();  // ends watches, refuses new calls, waits for handlers
//
// Thread-safe. Handlers run on gRPC's threads and only post or copy; one thread
// of its own feeds the watchers, another accepts on the unix socket.
#ifndef DFL_CONTROL_CONTROL_SERVER_H_
#define DFL_CONTROL_CONTROL_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/control/backend.h"
#include "daemon/control/caller.h"
#include "daemon/control/observer.h"

namespace dfl::net {
class NetworkSecurity;
}  // namespace dfl::net

namespace dfl::control {

// Version of the contract in proto/dfl/control/v1.
inline constexpr uint32_t kControlProtocolVersion = 1;

// One call that changed something, or tried to, or was refused.
struct AuditRecord {
  Caller caller;        // role kNone: somebody who may call nothing
  std::string what;     // "apply a plan", "train pause", "call GetStatus"
  absl::Status status;  // how it ended
};

struct ControlServerOptions {
  // Path of the unix socket; "" = none. The folder must exist. Its mode is
  // 0660; where `admins` or `viewers` is set it is 0666, for these people need
  // not be of the daemon's group, and whoever has no role is cut off.
  std::string unix_socket;
  // As unix_roles.h has them.
  std::vector<std::string> admins;
  std::vector<std::string> viewers;
  // "host:port", port 0 = chosen by the system.
  std::vector<std::string> addresses;
  // Who is let in on `addresses`: people with a certificate of the network; a
  // node's ends in the handshake. Null: plain text, and whoever reaches an
  // address is an admin; only where the settings say insecure. It outlives the
  // server.
  net::NetworkSecurity* security = nullptr;
  // Plans must be signed, also on the unix socket and while the backend knows
  // no cluster: a node of a network whose certificate is not valid yet.
  bool signed_orders = false;
  // The longest time of a unary call; a caller may set a shorter deadline.
  absl::Duration max_call_time = absl::Seconds(60);
  // Of one that waits for a checkpoint to be written or read.
  absl::Duration max_disk_time = absl::Minutes(10);
  // Exports, imports and restores are forgotten this long after their last use.
  absl::Duration transfer_idle_time = absl::Seconds(60);
  int max_transfers = 4;
  int max_watchers = 32;
  // How many callers may ask the members for their status at once.
  int max_asks = 8;
  // Answers for metrics, log and checks; null: nobody does. It outlives the
  // server.
  Observer* observer = nullptr;
  // Which services of grpc.health.v1 serve, by name; asked once a second, on
  // the timers' thread. Null: there is no health service.
  std::function<std::map<std::string, bool>()> health;
  // How long the destructor waits for answers to be sent and for idle
  // connections to close, before it cuts them.
  absl::Duration shutdown_grace = absl::Milliseconds(500);
  // Called after every call that changes something, and for every refusal of a
  // known or unknown caller; quick, any thread.
  std::function<void(const AuditRecord&)> audit;
};

class ControlServer {
 public:
  virtual ~ControlServer() = default;

  // `backend` must outlive the server.
  // Errors: INVALID_ARGUMENT names the setting for an unknown user or group;
  // ALREADY_EXISTS "address in use" names the path or address and says
  // who to stop; PERMISSION_DENIED; NOT_FOUND when the socket's folder is
  // missing; INVALID_ARGUMENT for a path longer than the system allows or a
  // malformed address.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(
      ControlServerOptions options, Backend& backend);

  // What it listens on: "unix:/path" first, then "host:port" as bound.
  virtual const std::vector<std::string>& addresses() const = 0;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_CONTROL_SERVER_H_

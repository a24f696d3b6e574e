// The control service: gRPC on a unix socket, and on network addresses where
// the node's settings allow it. It checks what comes in, asks Backend, and maps
// absl::Status to grpc::Status; it decides nothing itself.
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
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/control/backend.h"

namespace dfl::control {

// Version of the contract in proto/dfl/control/v1.
inline constexpr uint32_t kControlProtocolVersion = 1;

// One call that changed something, or tried to.
struct AuditRecord {
  std::string who;      // "uid 1000 (pid 4711)" or "10.0.0.7:51234"
  std::string what;     // "ApplyPlan version 7", "Train pause"
  absl::Status status;  // how it ended
};

struct ControlServerOptions {
  // Path of the unix socket, mode 0660; "" = none. The folder must exist.
  std::string unix_socket;
  // "host:port" in plaintext, port 0 = chosen by the system. Only if the
  // settings say insecure, because whoever reaches such an address steers the
  // node.
  std::vector<std::string> insecure_addresses;
  // The longest time of a unary call; a caller may set a shorter deadline.
  absl::Duration max_call_time = absl::Seconds(60);
  // Exports and imports are forgotten this long after their last use.
  absl::Duration transfer_idle_time = absl::Seconds(60);
  int max_transfers = 4;
  int max_watchers = 32;
  // How long the destructor waits for answers to be sent and for idle
  // connections to close, before it cuts them.
  absl::Duration shutdown_grace = absl::Milliseconds(500);
  // Called after every call that changes something; quick, any thread.
  std::function<void(const AuditRecord&)> audit;
};

class ControlServer {
 public:
  virtual ~ControlServer() = default;

  // `backend` must outlive the server.
  // Errors: ALREADY_EXISTS "address in use" names the path or address and says
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

// The one gate of the control service: every call passes it before anything
// else looks at it. The least role of each method stands in control.proto; a
// method without one is for nobody. Refusals are audited.
#ifndef DFL_CONTROL_GATE_H_
#define DFL_CONTROL_GATE_H_

#include <grpcpp/server_context.h>

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/control/caller.h"
#include "daemon/control/callers.h"
#include "daemon/control/control_server.h"

namespace dfl::control {

// The least role of each method of the service, by its name: "GetStatus". A
// method for nobody is not in it.
std::map<std::string, Role, std::less<>> LeastRoles();

// Thread-safe.
class Gate {
 public:
  // `callers` outlives it.
  Gate(const Callers& callers, std::function<void(const AuditRecord&)> audit);

  // Errors: PERMISSION_DENIED says what the caller is, what the method takes,
  // and what to do.
  absl::StatusOr<Caller> Enter(const grpc::CallbackServerContext& context,
                               absl::string_view method) const;

  // For a call that lasts: asks the same again, also after `context` has gone.
  // The gate outlives it.
  std::function<absl::Status()> Guard(
      const grpc::CallbackServerContext& context,
      absl::string_view method) const;

 private:
  absl::StatusOr<Caller> Check(const Connection& connection,
                               absl::string_view method) const;

  const Callers& callers_;
  const std::map<std::string, Role, std::less<>> least_;
  const std::function<void(const AuditRecord&)> audit_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_GATE_H_

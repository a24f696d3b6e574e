// How the handlers of calls answer: at once or later, and with a record in the
// audit log where the call changes something.
#ifndef DFL_CONTROL_ANSWERS_H_
#define DFL_CONTROL_ANSWERS_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/control/caller.h"
#include "daemon/control/control_server.h"
#include "daemon/control/pending_calls.h"
#include "daemon/control/timers.h"

namespace dfl::control {

using Reactor = grpc::ServerUnaryReactor;

// A call that has passed the gate.
struct Call {
  grpc::CallbackServerContext* context;
  Caller caller;
};

// Thread-safe.
class Answers {
 public:
  // Both outlive it.
  Answers(Timers& timers, const ControlServerOptions& options);

  // Answers at once.
  static Reactor* Now(const Call& call, const absl::Status& status);
  // The same for a call that changes something.
  Reactor* NowAudited(const Call& call, std::string what,
                      const absl::Status& status);
  // What an answer waits for at most.
  enum class Patience {
    kUsual,  // ControlServerOptions::max_call_time
    kDisk,   // max_disk_time
  };
  // Answers `reactor`, the context's default one, later; `what` = "" is not
  // audited.
  std::shared_ptr<PendingCalls::Call> Later(
      const Call& call, Reactor* reactor, std::string what,
      Patience patience = Patience::kUsual);
  // The same for an order whose carrying out asks PendingCalls::Call::Begin.
  std::shared_ptr<PendingCalls::Call> LaterOrder(
      const Call& call, Reactor* reactor, std::string what,
      Patience patience = Patience::kUsual);

  // Fails what is pending, and all that comes later, with UNAVAILABLE.
  void Close();

 private:
  std::shared_ptr<PendingCalls::Call> Add(const Call& call, Reactor* reactor,
                                          PendingCalls::Kind kind,
                                          std::string what, Patience patience);

  const ControlServerOptions& options_;
  PendingCalls pending_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_ANSWERS_H_

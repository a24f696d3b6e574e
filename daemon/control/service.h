// The calls of dfl.control.v1 as gRPC makes them: each passes the gate first,
// and is then one of node_calls.h, member_calls.h, transfer_calls.h,
// checkpoint_calls.h or observe_calls.h, or a stream. Room-internal.
#ifndef DFL_CONTROL_SERVICE_H_
#define DFL_CONTROL_SERVICE_H_

#include <memory>

#include "daemon/control/answers.h"
#include "daemon/control/backend.h"
#include "daemon/control/callers.h"
#include "daemon/control/checkpoint_calls.h"
#include "daemon/control/control_server.h"
#include "daemon/control/gate.h"
#include "daemon/control/member_asks.h"
#include "daemon/control/member_calls.h"
#include "daemon/control/node_calls.h"
#include "daemon/control/observe_calls.h"
#include "daemon/control/timers.h"
#include "daemon/control/transfer_calls.h"
#include "daemon/control/watch_hub.h"
#include "dfl/control/v1/control.grpc.pb.h"

namespace dfl::control {

class GatedService {
 public:
  // All arguments outlive it.
  GatedService(Backend& backend, Timers& timers, const Callers& callers,
               const ControlServerOptions& options);
  ~GatedService();

  grpc::Service* service();

  // Ends streams, fails pending calls and frees transfers. Later calls fail.
  void Close();

 private:
  class Handlers;

  Gate gate_;
  Answers answers_;
  NodeCalls node_calls_;
  MemberCalls member_calls_;
  TransferCalls transfer_calls_;
  CheckpointCalls checkpoint_calls_;
  ObserveCalls observe_calls_;
  WatchHub watches_;
  MemberAsks asks_;
  const std::unique_ptr<Handlers> handlers_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_SERVICE_H_

// What each call that steers or reads the node does once the gate has let it
// in: it is checked, audited if it changes something, and handed to Backend.
#ifndef DFL_CONTROL_NODE_CALLS_H_
#define DFL_CONTROL_NODE_CALLS_H_

#include "daemon/control/answers.h"
#include "daemon/control/backend.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

// Thread-safe.
class NodeCalls {
 public:
  // Both outlive it. With `signed_orders` a plan must come as a record,
  // whatever the backend knows of its network.
  NodeCalls(Backend& backend, Answers& answers, bool signed_orders);

  // Handlers, in the order of control.proto.
  Reactor* GetVersion(const Call&, const dfl::control::v1::GetVersionRequest*,
                      dfl::control::v1::GetVersionResponse*);
  Reactor* GetStatus(const Call&, const dfl::control::v1::GetStatusRequest*,
                     dfl::control::v1::GetStatusResponse*);
  Reactor* GetPlan(const Call&, const dfl::control::v1::GetPlanRequest*,
                   dfl::control::v1::GetPlanResponse*);
  Reactor* ApplyPlan(const Call&, const dfl::control::v1::ApplyPlanRequest*,
                     dfl::control::v1::ApplyPlanResponse*);
  Reactor* GetData(const Call&, const dfl::control::v1::GetDataRequest*,
                   dfl::control::v1::GetDataResponse*);
  Reactor* Train(const Call&, const dfl::control::v1::TrainRequest*,
                 dfl::control::v1::TrainResponse*);
  Reactor* ListPeers(const Call&, const dfl::control::v1::ListPeersRequest*,
                     dfl::control::v1::ListPeersResponse*);
  Reactor* AddPeer(const Call&, const dfl::control::v1::AddPeerRequest*,
                   dfl::control::v1::AddPeerResponse*);
  Reactor* RemovePeer(const Call&, const dfl::control::v1::RemovePeerRequest*,
                      dfl::control::v1::RemovePeerResponse*);
  Reactor* GetSettings(const Call&, const dfl::control::v1::GetSettingsRequest*,
                       dfl::control::v1::GetSettingsResponse*);
  Reactor* PutRecord(const Call&, const dfl::control::v1::PutRecordRequest*,
                     dfl::control::v1::PutRecordResponse*);
  Reactor* ListRecords(const Call&, const dfl::control::v1::ListRecordsRequest*,
                       dfl::control::v1::ListRecordsResponse*);

 private:
  Backend& backend_;
  Answers& answers_;
  const bool signed_orders_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_NODE_CALLS_H_

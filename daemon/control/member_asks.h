// Asks members for their status and streams the answers, each as it comes.
//
// At most kAsksAtOnce questions of a stream are under way or answered and not
// yet written, so that neither the network nor a caller that does not read
// makes a node hold more than that many answers. Messages are made and written
// on the timers' thread; whoever delivers an answer only puts it down.
#ifndef DFL_CONTROL_MEMBER_ASKS_H_
#define DFL_CONTROL_MEMBER_ASKS_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "daemon/control/backend.h"
#include "daemon/control/timers.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

inline constexpr int kAsksAtOnce = 16;

// Thread-safe. `backend` and `timers` must outlive it.
class MemberAsks {
 public:
  using AskReactor =
      grpc::ServerWriteReactor<dfl::control::v1::AskMembersResponse>;

  MemberAsks(Backend& backend, Timers& timers, int max_streams);
  // As Stop.
  ~MemberAsks();
  MemberAsks(const MemberAsks&) = delete;
  MemberAsks& operator=(const MemberAsks&) = delete;

  // Asks those that `request` means; the reactor deletes itself. It ends with
  // NOT_FOUND or INVALID_ARGUMENT as SelectMembers says, RESOURCE_EXHAUSTED if
  // there are too many streams, UNAVAILABLE after Stop, and with what `allowed`
  // says, asked before each message, when that is an error.
  AskReactor* Open(const dfl::control::v1::AskMembersRequest& request,
                   std::function<absl::Status()> allowed);

  // A caller that is not let in.
  static AskReactor* Refuse(const absl::Status& status);

  // Ends every stream, and all that are opened later, with UNAVAILABLE. What
  // members answer afterwards is dropped.
  void Stop();

 private:
  class Stream;
  struct State;

  std::shared_ptr<State> state_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_MEMBER_ASKS_H_

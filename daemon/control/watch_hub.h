// Feeds the watchers. Each gets the status at its interval, and at once after
// an urgent event. Other events come with the next message.
//
// The node's loop only appends events to short bounded lists. Messages are made
// and written on the timers' thread. A watcher that does not read loses events,
// which are counted, and delays nobody.
#ifndef DFL_CONTROL_WATCH_HUB_H_
#define DFL_CONTROL_WATCH_HUB_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/control/backend.h"
#include "daemon/control/timers.h"
#include "dfl/control/v1/control.pb.h"

namespace dfl::control {

// Thread-safe. `backend` and `timers` must outlive it.
class WatchHub {
 public:
  WatchHub(Backend& backend, Timers& timers, int max_watchers);
  // As Stop.
  ~WatchHub();
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  // Adds a watcher; the reactor deletes itself. It ends with RESOURCE_EXHAUSTED
  // if there are too many, with UNAVAILABLE after Stop, and with what `allowed`
  // says, asked once a second and before each message, when that is an error.
  grpc::ServerWriteReactor<dfl::control::v1::WatchResponse>* Open(
      absl::Duration interval, std::function<absl::Status()> allowed);

  // A watcher that is not let in.
  static grpc::ServerWriteReactor<dfl::control::v1::WatchResponse>* Refuse(
      const absl::Status& status);

  // Ends the subscription and, with UNAVAILABLE, every watcher.
  void Stop();

 private:
  class Stream;
  struct State;

  std::shared_ptr<State> state_;
  std::unique_ptr<Subscription> subscription_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_WATCH_HUB_H_

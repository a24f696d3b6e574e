// Feeds the watchers: to each the status at its interval, and at once after an
// urgent event; events in between come with the next message.
//
// The node's loop only appends events to short bounded lists here; messages are
// made and written on the timers' thread, and a watcher that does not read
// loses events, counted, and holds nobody up.
#ifndef DFL_CONTROL_WATCH_HUB_H_
#define DFL_CONTROL_WATCH_HUB_H_

#include <grpcpp/support/server_callback.h>

#include <memory>

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

  // A new watcher; the reactor deletes itself. One too many is finished with
  // RESOURCE_EXHAUSTED, one after Stop with UNAVAILABLE.
  grpc::ServerWriteReactor<dfl::control::v1::WatchResponse>* Open(
      absl::Duration interval);

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

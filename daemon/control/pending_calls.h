// Unary calls whose answer comes later, from another thread, or never.
//
// Each is finished exactly once: by its answer, by its deadline, or because the
// server shuts down. A second attempt finds it taken and does nothing.
#ifndef DFL_CONTROL_PENDING_CALLS_H_
#define DFL_CONTROL_PENDING_CALLS_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/control/timers.h"

namespace dfl::control {

// Thread-safe. `timers` must outlive it; answers may come after its end.
class PendingCalls {
 public:
  class Call {
   public:
    // True for the one caller that may fill the response and call Finish.
    bool Take();
    // For an order: true for as long as it may be carried out, which begins
    // with this. Whoever waits for it is told whether it had begun when its
    // time is over.
    bool Begin();
    // After Take. Neither call nor response may be touched afterwards.
    void Finish(const absl::Status& status);

   private:
    friend class PendingCalls;
    // What outlives PendingCalls for the sake of late answers.
    struct Registry {
      absl::Mutex mutex;
      bool closed ABSL_GUARDED_BY(mutex) = false;
      std::set<std::shared_ptr<Call>> calls ABSL_GUARDED_BY(mutex);
    };

    std::shared_ptr<Registry> registry_;
    std::weak_ptr<Call> self_;
    grpc::ServerUnaryReactor* reactor_ = nullptr;
    std::function<void(const absl::Status&)> on_finish_;
    bool begun_ = false;  // under registry_->mutex
  };

  explicit PendingCalls(Timers& timers);
  // As Close.
  ~PendingCalls();

  // What became of a call whose time is over.
  enum class Kind {
    kQuestion,  // nothing
    kChange,    // it may still happen
    kOrder,     // it may still happen if it had begun: see Call::Begin
  };

  // `reactor` will be finished with DEADLINE_EXCEEDED after `timeout`.
  // `on_finish` is called at the end, whatever the reason.
  std::shared_ptr<Call> Add(grpc::ServerUnaryReactor* reactor,
                            absl::Duration timeout, Kind kind,
                            std::function<void(const absl::Status&)> on_finish);

  // Finishes every call, and all that are added later, with UNAVAILABLE.
  void Close();

 private:
  Timers& timers_;
  std::shared_ptr<Call::Registry> registry_;
};

}  // namespace dfl::control

#endif  // DFL_CONTROL_PENDING_CALLS_H_

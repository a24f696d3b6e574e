// Cancels a stream when its reader wants to stop, or when no message comes for
// too long. Not installed.
#ifndef DFL_CLIENT_WATCHDOG_H_
#define DFL_CLIENT_WATCHDOG_H_

#include <grpcpp/client_context.h>

#include <atomic>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl {
namespace client {

class Watchdog {
 public:
  // From now until it is destroyed. `stop_requested`, which may be null, is
  // called about every 100 ms. `context` outlives it.
  Watchdog(grpc::ClientContext& context, std::function<bool()> stop_requested);
  ~Watchdog();

  // The next message may take `longest`.
  void Await(absl::Duration longest) ABSL_LOCKS_EXCLUDED(mutex_);
  // It came; time does not count until Await.
  void MessageCame() ABSL_LOCKS_EXCLUDED(mutex_) {
    Await(absl::InfiniteDuration());
  }

  bool stopped() const { return stopped_; }
  bool timed_out() const { return timed_out_; }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::ClientContext& context_;
  const std::function<bool()> stop_requested_;
  absl::Mutex mutex_;
  SteadyCondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  // By the steady clock.
  absl::Time due_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  std::atomic<bool> stopped_{false};
  std::atomic<bool> timed_out_{false};
  std::thread thread_;
};

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_WATCHDOG_H_

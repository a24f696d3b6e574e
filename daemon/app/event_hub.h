// Where the node's events go: the log, and whoever subscribed. The newest are
// kept for who asks later.
#ifndef DFL_APP_EVENT_HUB_H_
#define DFL_APP_EVENT_HUB_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/app/logger.h"
#include "daemon/control/backend.h"
#include "daemon/ports/events.h"

namespace dfl::app {

// Thread-safe.
class EventHub final : public ports::EventSink {
 public:
  // `log` must outlive it. `wall` stamps the events that watchers get.
  explicit EventHub(Logger& log, std::function<absl::Time()> wall = absl::Now);

  void Report(const ports::NodeEvent& event) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  std::unique_ptr<control::Subscription> Subscribe(
      std::function<void(const control::TimedEvent&)> on_event)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As control::Backend's.
  control::KeptEvents Events() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Handle;

  void Log(const ports::NodeEvent& event);

  Logger& log_;
  const std::function<absl::Time()> wall_;
  mutable absl::Mutex mutex_;
  int64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::function<void(const control::TimedEvent&)>>
      subscribers_ ABSL_GUARDED_BY(mutex_);
  std::deque<control::TimedEvent> kept_ ABSL_GUARDED_BY(mutex_);
  int64_t forgotten_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace dfl::app

#endif  // DFL_APP_EVENT_HUB_H_

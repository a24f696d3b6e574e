// The phase that a node is in, why, and what it is ordered to become.
//
// Orders to pause and to stop wait for the next boundary: the node's model must
// not be left in the midst of a step.
//
// Loop only.
#ifndef DFL_RUNTIME_PHASES_H_
#define DFL_RUNTIME_PHASES_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "daemon/ports/events.h"
#include "daemon/ports/frames.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/progress.h"

namespace dfl::runtime {

class Phases {
 public:
  // `changed` is called after every change. All must outlive it.
  Phases(ports::Loop& loop, ports::EventSink& events, Progress& progress,
         std::function<void()> changed)
      : loop_(loop),
        events_(events),
        progress_(progress),
        changed_(std::move(changed)) {}

  ports::Phase now() const { return now_; }
  bool Is(ports::Phase phase) const { return now_ == phase; }
  const std::string& reason() const { return reason_; }
  // It takes steps: training, or degraded.
  bool Running() const {
    return Is(ports::Phase::kTraining) || Is(ports::Phase::kDegraded);
  }

  // Becomes `phase`. The clock of training time runs while Running(). Where the
  // phase stays as it is only the reason changes, and nobody is told.
  void Set(ports::Phase phase, absl::string_view reason) {
    reason_ = std::string(reason);
    if (phase == now_) return;
    const ports::Phase from = std::exchange(now_, phase);
    if (Running()) {
      progress_.Resume(loop_.Now());
    } else {
      progress_.Pause(loop_.Now());
    }
    events_.Report(ports::PhaseChanged{from, phase, reason_});
    changed_();
  }

  // Asks for kPaused or kStopped at the next boundary. kIdle withdraws that.
  void Want(ports::Phase phase) { wanted_ = phase; }
  bool wants() const { return wanted_ != ports::Phase::kIdle; }
  // At a boundary: becomes what is wanted. Only when something is.
  void Obey() {
    const ports::Phase wanted = std::exchange(wanted_, ports::Phase::kIdle);
    Set(wanted,
        wanted == ports::Phase::kPaused ? "paused by hand" : "stopped by hand");
  }

 private:
  ports::Loop& loop_;
  ports::EventSink& events_;
  Progress& progress_;
  const std::function<void()> changed_;
  ports::Phase now_ = ports::Phase::kIdle;
  ports::Phase wanted_ = ports::Phase::kIdle;
  std::string reason_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PHASES_H_

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

  static constexpr char kByHand[] = "paused by hand";

  ports::Phase now() const { return now_; }
  bool Is(ports::Phase phase) const { return now_ == phase; }
  const std::string& reason() const { return reason_; }
  // It takes steps: training, or degraded.
  bool Running() const {
    return Is(ports::Phase::kTraining) || Is(ports::Phase::kDegraded);
  }

  // What is added to the reason of a phase that ends a run: finished, failed.
  // Asked for before the phase changes.
  void SetEndNote(std::function<std::string()> note) {
    end_note_ = std::move(note);
  }

  // Becomes `phase`. The clock of training time runs while Running(). Where the
  // phase stays as it is only the reason changes, and nobody is told.
  void Set(ports::Phase phase, absl::string_view reason) {
    reason_ = std::string(reason);
    if (phase == now_) return;
    if (end_note_ &&
        (phase == ports::Phase::kFinished || phase == ports::Phase::kFailed)) {
      reason_ += end_note_();
    }
    const ports::Phase from = std::exchange(now_, phase);
    if (Running()) {
      progress_.Resume(loop_.Now());
    } else {
      progress_.Pause(loop_.Now());
    }
    events_.Report(ports::PhaseChanged{from, phase, reason_});
    changed_();
  }

  // Asks for kPaused or kStopped at the next boundary. kIdle withdraws what
  // is wanted. Nothing else takes the place of kFailed.
  void Want(ports::Phase phase) {
    if (failing() && phase != ports::Phase::kIdle) return;
    wanted_ = phase;
    why_paused_ = kByHand;
  }
  // Asks for kPaused, for a reason of this box.
  void WantRest(std::string why) {
    Want(ports::Phase::kPaused);
    why_paused_ = std::move(why);
  }
  // Asks for kFailed at the next boundary.
  void WantFailed(std::string why) {
    wanted_ = ports::Phase::kFailed;
    why_failed_ = std::move(why);
  }
  bool wants() const { return wanted_ != ports::Phase::kIdle; }
  bool failing() const { return wanted_ == ports::Phase::kFailed; }
  // At a boundary: becomes what is wanted. Only when something is.
  void Obey() {
    const ports::Phase wanted = std::exchange(wanted_, ports::Phase::kIdle);
    Set(wanted, wanted == ports::Phase::kFailed ? why_failed_
                : wanted == ports::Phase::kPaused
                    ? why_paused_
                    : std::string("stopped by hand"));
  }

 private:
  ports::Loop& loop_;
  ports::EventSink& events_;
  Progress& progress_;
  const std::function<void()> changed_;
  std::function<std::string()> end_note_;
  ports::Phase now_ = ports::Phase::kIdle;
  ports::Phase wanted_ = ports::Phase::kIdle;
  std::string reason_;
  std::string why_failed_;
  std::string why_paused_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PHASES_H_

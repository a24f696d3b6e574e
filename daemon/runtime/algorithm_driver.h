// Drives the algorithm: hands it events one at a time, has its actions carried
// out as they are given, in order, and keeps its timers.
//
// An event that comes up while another is being handled, or while its actions
// are being carried out, waits its turn.
//
// Loop only.
#ifndef DFL_RUNTIME_ALGORITHM_DRIVER_H_
#define DFL_RUNTIME_ALGORITHM_DRIVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "daemon/core/algorithm/algorithm.h"
#include "daemon/core/algorithm/decisions.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/timing.h"

namespace dfl::runtime {

// Carries out what an algorithm asks for. An action that it cannot carry out
// does not compile (AlgorithmDriver::Do). Timers are not among them.
class Actor {
 public:
  virtual ~Actor() = default;
  virtual void Do(const core::ComputeGradient& action) = 0;
  virtual void Do(const core::Predict& action) = 0;
  virtual void Do(const core::Ask& action) = 0;
  virtual void Do(const core::CancelAsk& action) = 0;
  virtual void Do(const core::Answer& action) = 0;
  virtual void Do(const core::Push& action) = 0;
  virtual void Do(const core::Give& action) = 0;
  virtual void Do(const core::Skip& action) = 0;
  virtual void Do(const core::Missed& action) = 0;
  virtual void Do(const core::StepDone& action) = 0;
  // No event is being handled any more.
  virtual void OnHandled() = 0;
  // How long a wait for neighbours lasts that the algorithm wants to last
  // `deadline`.
  virtual absl::Duration Patience(absl::Duration deadline) const {
    return deadline;
  }
};

class AlgorithmDriver : private core::Actions {
 public:
  // Both must outlive it.
  AlgorithmDriver(ports::Loop& loop, Actor& actor)
      : loop_(loop), actor_(actor) {}
  ~AlgorithmDriver() override;

  // Takes the place of the algorithm before, in a new epoch. It was handed
  // nothing yet. null: stays without one.
  void Install(std::unique_ptr<core::Algorithm> algorithm,
               std::unique_ptr<core::SeededDecisions> decisions);
  // Ends the algorithm, its timers and the events that wait.
  void Stop();
  // Nothing is handled from here on, and no timer fires: it stays as it is.
  void Halt();
  // A new epoch begins; Install is to follow.
  void BeginEpoch() { ++epoch_; }

  // Who is told what its work takes; null: nobody. It outlives the driver.
  void SetTiming(TimingSink* timing) { timing_ = timing; }
  TimingSink* timing() const { return timing_; }

  // Dropped when there is no algorithm.
  void Handle(core::Event event);
  // The algorithm, which was handed nothing yet, goes on from there.
  // Errors: as Decisions' and Algorithm's ImportState.
  absl::Status Import(const core::DecisionsState& decisions,
                      const core::AlgorithmState& state);

  core::Algorithm* get() const { return algorithm_.get(); }
  // The iteration k, by which nodes compare themselves.
  int64_t step() const { return algorithm_ ? algorithm_->step() : 0; }
  // Steps and rounds, as people count.
  core::Pace pace() const {
    return algorithm_ ? algorithm_->pace() : core::Pace();
  }
  bool handling() const { return handling_; }
  // Only with an algorithm.
  core::DecisionsState decisions() const { return decisions_->ExportState(); }
  // Counts algorithm objects; 0 before the first.
  uint64_t epoch() const { return epoch_; }

 private:
  // core::Actions
  void Do(core::Action action) override;
  // Handles what has been queued.
  void Drain();
  void SetTimer(const core::WakeAfter& action);
  void CancelTimer(const core::CancelTimer& action);

  ports::Loop& loop_;
  Actor& actor_;
  TimingSink* timing_ = nullptr;
  std::unique_ptr<core::SeededDecisions> decisions_;
  std::unique_ptr<core::Algorithm> algorithm_;
  std::deque<core::Event> queue_;
  bool handling_ = false;
  bool halted_ = false;
  uint64_t epoch_ = 0;
  std::map<uint64_t, ports::TimerId> timers_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_ALGORITHM_DRIVER_H_

// What the parts of a step take: the time between two steps, of which the
// gradient and the algorithm's own work are known. The rest is the wait for
// others.
#ifndef DFL_APP_EYES_STEP_METER_H_
#define DFL_APP_EYES_STEP_METER_H_

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/timing.h"
#include "daemon/web/meters.h"

namespace dfl::app {

// Loop only.
class StepMeter final : public runtime::TimingSink {
 public:
  // Both outlive it.
  StepMeter(ports::Loop& loop, web::Meters& meters)
      : loop_(loop), meters_(meters) {}

  // A step has ended.
  void OnStep() {
    const absl::Time now = loop_.Now();
    meters_.mix.Observe(algorithm_);
    if (last_) {
      const absl::Duration step = now - *last_;
      meters_.step.Observe(step);
      meters_.wait.Observe(
          std::max(absl::ZeroDuration(), step - gradient_ - algorithm_));
    }
    last_ = now;
    gradient_ = algorithm_ = absl::ZeroDuration();
  }
  // The node does not train any more, or anew: the next step begins then.
  void OnPhase() { last_.reset(); }

  // runtime::TimingSink
  void OnGradient(absl::Duration took) override {
    meters_.gradient.Observe(took);
    gradient_ += took;
  }
  void OnAlgorithm(absl::Duration took) override { algorithm_ += took; }

 private:
  ports::Loop& loop_;
  web::Meters& meters_;
  std::optional<absl::Time> last_;  // the end of the last step
  // Since then.
  absl::Duration gradient_;
  absl::Duration algorithm_;
};

}  // namespace dfl::app

#endif  // DFL_APP_EYES_STEP_METER_H_

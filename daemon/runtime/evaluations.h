// When the model is evaluated at a boundary, and when the run is over.
//
// The learner does one thing at a time: an evaluation, and the end of the run,
// wait for a gradient that has outlived its step. The last evaluation of a run
// takes all the test rows.
//
// Loop only.
#ifndef DFL_RUNTIME_EVALUATIONS_H_
#define DFL_RUNTIME_EVALUATIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

class Evaluations {
 public:
  // All must outlive it.
  Evaluations(OwnState& own, Training& training, ports::Loop& loop,
              ports::EventSink& events)
      : own_(own), training_(training), loop_(loop), events_(events) {}

  // Which rule of the plan ends the run now, for a person; nullopt: none.
  std::optional<std::string> StopRule() const;
  // The first iteration above the present one at which steps, rounds or epochs
  // end the run; 0, if none up to `furthest` does.
  int64_t EndsBy(int64_t furthest) const;
  // At the boundary of a node that trains: evaluates, or ends the run with
  // phase finished, where that is due. Returns whether it is; then the boundary
  // is visited again.
  bool Visit();

  // A new run.
  void Forget() { made_ = Made(); }

  // The last one that succeeded, of this run.
  const std::optional<ports::Evaluation>& last() const { return made_.last; }
  // The step at which it was made; -1: none was yet.
  int64_t step() const { return made_.step; }

 private:
  // What was measured in this run.
  struct Made {
    std::optional<ports::Evaluation> last;
    int64_t step = -1;
    int64_t rows = -1;     // that were asked for; 0: all
    bool owed = false;     // one is due and waits until the learner is free
    int64_t visited = -1;  // the step of the last boundary; -1: none was yet
  };

  // Notes the boundary, and says whether an evaluation is due there.
  bool Due();
  void Finish(const std::string& why);
  void Run(int64_t rows, std::function<void()> then);
  int64_t test_rows() const {
    return training_.learner().trainer()->data().test_rows;
  }

  OwnState& own_;
  Training& training_;
  ports::Loop& loop_;
  ports::EventSink& events_;
  Made made_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_EVALUATIONS_H_

// What the parts of a node's steps take, told to whoever measures.
#ifndef DFL_RUNTIME_TIMING_H_
#define DFL_RUNTIME_TIMING_H_

#include "absl/time/time.h"

namespace dfl::runtime {

// Called on the loop; must be quick and must not call back. Times are of the
// loop's clock, so they are 0 in the simulator where work takes no time.
class TimingSink {
 public:
  virtual ~TimingSink() = default;
  // A gradient was asked for and has come.
  virtual void OnGradient(absl::Duration took) = 0;
  // The algorithm has handled events, and what it asked for at once was done:
  // mixing, the step, copies of the model that are to be sent.
  virtual void OnAlgorithm(absl::Duration took) = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_TIMING_H_

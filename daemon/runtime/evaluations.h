// What the node last measured of its model, and whether it is to measure it.
#ifndef DFL_RUNTIME_EVALUATIONS_H_
#define DFL_RUNTIME_EVALUATIONS_H_

#include <cstdint>
#include <optional>

#include "daemon/ports/learner.h"

namespace dfl::runtime {

struct Evaluations {
  std::optional<ports::Evaluation> last;  // that succeeded
  int64_t step = -1;                      // of the last one; -1: none yet
  int64_t rows = -1;                      // that it was asked for; 0: all
  bool owed = false;  // one is due and waits until the learner is free
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_EVALUATIONS_H_

// How far a node trusts its own judgement of others ([Lifeguard] IV-A): one
// that is throttled or badly connected first doubts itself.
#ifndef DFL_RUNTIME_MEMBERSHIP_LOCAL_HEALTH_H_
#define DFL_RUNTIME_MEMBERSHIP_LOCAL_HEALTH_H_

#include <algorithm>

#include "daemon/runtime/membership/preset.h"

namespace dfl::runtime {

class LocalHealth {
 public:
  // A timer came late, a receipt did not come, or this node had to refute.
  void Worse() { score_ = std::min(score_ + 1, kWorstHealth); }
  // An ack came in time.
  void Better() { score_ = std::max(score_ - 1, 0); }

  int score() const { return score_; }  // 0: well, to kWorstHealth
  // By which times and periods are multiplied.
  int patience() const { return score_ + 1; }

 private:
  int score_ = 0;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_MEMBERSHIP_LOCAL_HEALTH_H_

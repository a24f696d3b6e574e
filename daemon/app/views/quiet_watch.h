// Whether a loop has run anything since somebody last looked. What it has not
// touched need not be copied again.
#ifndef DFL_APP_VIEWS_QUIET_WATCH_H_
#define DFL_APP_VIEWS_QUIET_WATCH_H_

#include <cstdint>

#include "absl/time/time.h"

namespace dfl::app {

// On the loop.
class QuietWatch {
 public:
  // `turns`: the loop's count (EventLoop::turns), taken inside a task or timer
  // of its own. False the first time, when anything else has run since the last
  // look, and two seconds after the last false: what other threads change and
  // do not tell the loop is seen by then.
  bool IsQuiet(int64_t turns, absl::Time now) {
    constexpr absl::Duration kLongest = absl::Seconds(2);
    const bool quiet = turns == expected_ && now - news_ < kLongest;
    expected_ = turns + 1;  // this look is counted when it is over
    if (!quiet) news_ = now;
    return quiet;
  }

 private:
  int64_t expected_ = -1;
  absl::Time news_ = absl::InfinitePast();
};

}  // namespace dfl::app

#endif  // DFL_APP_VIEWS_QUIET_WATCH_H_

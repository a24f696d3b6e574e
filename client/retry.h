// When a call is tried again, and after how long. Not installed.
#ifndef DFL_CLIENT_RETRY_H_
#define DFL_CLIENT_RETRY_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace dfl {
namespace client {

struct RetryPolicy {
  int max_attempts = 4;  // >= 1
  absl::Duration first_wait = absl::Milliseconds(50);
  absl::Duration longest_wait = absl::Seconds(1);
};

// Calls `attempt(time left)` until it succeeds, fails with another code than
// UNAVAILABLE, the attempts are used up, or the next wait would not leave time
// for one more. Waits double from first_wait to longest_wait. Returns the last
// status. `now` and `sleep` are the clock's; tests pass their own.
absl::Status RetryUnavailable(
    const RetryPolicy& policy, absl::Duration timeout,
    const std::function<absl::Status(absl::Duration left)>& attempt,
    const std::function<absl::Time()>& now,
    const std::function<void(absl::Duration)>& sleep);

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_RETRY_H_

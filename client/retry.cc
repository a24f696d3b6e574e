#include "client/retry.h"

#include <algorithm>

namespace dfl {
namespace client {

absl::Status RetryUnavailable(
    const RetryPolicy& policy, absl::Duration timeout,
    const std::function<absl::Status(absl::Duration left)>& attempt,
    const std::function<absl::Time()>& now,
    const std::function<void(absl::Duration)>& sleep) {
  const absl::Time deadline = now() + timeout;
  absl::Duration wait = policy.first_wait;
  for (int tries = 1;; ++tries) {
    const absl::Status status = attempt(deadline - now());
    if (!absl::IsUnavailable(status) || tries >= policy.max_attempts) {
      return status;
    }
    if (now() + wait >= deadline) return status;
    sleep(wait);
    wait = std::min(wait * 2, policy.longest_wait);
  }
}

}  // namespace client
}  // namespace dfl

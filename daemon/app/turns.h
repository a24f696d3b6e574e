// Work that people ask for and that takes long: done one after the other on a
// worker, and no more of it waiting than a daemon can hold.
#ifndef DFL_APP_TURNS_H_
#define DFL_APP_TURNS_H_

#include <atomic>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/control/backend.h"
#include "daemon/ports/loop.h"

namespace dfl::app {

// Any thread.
class Turns {
 public:
  // The work under way included.
  static constexpr int kMostWaiting = 8;

  // `worker` is stopped before this goes.
  explicit Turns(ports::Worker& worker) : worker_(worker) {}

  // Does `work` when it is its turn and calls `done` with the result, on the
  // worker's thread. What nobody waits for any more, as `begin` says, is not
  // begun: CANCELLED. RESOURCE_EXHAUSTED, at once: too much waits.
  template <typename T>
  void Run(control::Begin begin, std::function<absl::StatusOr<T>()> work,
           control::Done<T> done) {
    if (waiting_.fetch_add(1) >= kMostWaiting) {
      waiting_.fetch_sub(1);
      return done(absl::ResourceExhaustedError(
          absl::StrCat(kMostWaiting,
                       " plans and questions about data wait for their turn on "
                       "this node; try again when they are through")));
    }
    worker_.Run(
        [this, begin = std::move(begin), work = std::move(work),
         done = std::move(done)] {
          absl::StatusOr<T> result =
              absl::CancelledError("nobody waits for the answer any more");
          if (!begin || begin()) result = work();
          waiting_.fetch_sub(1);
          done(std::move(result));
        },
        [] {});
  }

 private:
  ports::Worker& worker_;
  std::atomic<int> waiting_{0};
};

}  // namespace dfl::app

#endif  // DFL_APP_TURNS_H_

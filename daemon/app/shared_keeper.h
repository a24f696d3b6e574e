// The keeper of the run for all threads of the daemon: one change at a time,
// and the plan can be read without waiting for the disk.
#ifndef DFL_APP_SHARED_KEEPER_H_
#define DFL_APP_SHARED_KEEPER_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/runtime/keeper/run_keeper.h"

namespace dfl::app {

// Thread-safe.
class SharedKeeper {
 public:
  // `keeper` has begun.
  explicit SharedKeeper(runtime::RunKeeper keeper)
      : keeper_(std::move(keeper)), known_(keeper_.known()) {}

  // Returns what `use` returns, which has the keeper to itself. Waits for the
  // disk, so not on the node's loop.
  template <typename Use>
  auto Do(Use use) ABSL_LOCKS_EXCLUDED(keeper_mutex_, known_mutex_) {
    const absl::MutexLock one_at_a_time(&keeper_mutex_);
    auto result = use(keeper_);
    const absl::MutexLock lock(&known_mutex_);
    known_ = keeper_.known();
    return result;
  }

  // As RunKeeper's. Waits for the disk.
  void NoteInForce(uint64_t version) {
    Do([version](runtime::RunKeeper& keeper) {
      keeper.NoteInForce(version);
      return true;
    });
  }

  // Never null.
  std::shared_ptr<const runtime::KeptPlan> known()
      ABSL_LOCKS_EXCLUDED(known_mutex_) {
    const absl::MutexLock lock(&known_mutex_);
    return known_;
  }

 private:
  absl::Mutex keeper_mutex_ ABSL_ACQUIRED_BEFORE(known_mutex_);
  absl::Mutex known_mutex_;
  runtime::RunKeeper keeper_ ABSL_GUARDED_BY(keeper_mutex_);
  std::shared_ptr<const runtime::KeptPlan> known_ ABSL_GUARDED_BY(known_mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_SHARED_KEEPER_H_

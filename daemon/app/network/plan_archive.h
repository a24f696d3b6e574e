// The last eight plans that this node has taken, so that one can be shown and
// brought back. A plan lies in the file plan.N, where N is its version modulo
// eight: the document itself, which says its version.
#ifndef DFL_APP_NETWORK_PLAN_ARCHIVE_H_
#define DFL_APP_NETWORK_PLAN_ARCHIVE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/ports/files.h"
#include "daemon/runtime/keeper/run_state.h"

namespace dfl::app {

// Thread-safe.
class PlanArchive {
 public:
  static constexpr uint64_t kKept = 8;

  // Reads what is there; what is damaged is left out. `files` outlives it;
  // null: plans are kept in memory alone.
  explicit PlanArchive(ports::Files* files);

  // Keeps `plan`, which has a text, in place of the one that has its slot.
  // Waits for the disk; nothing is written where the same is kept already.
  // Errors: as Files; the plan is kept in memory all the same.
  absl::Status Keep(std::shared_ptr<const runtime::KeptPlan> plan)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Errors: NOT_FOUND says which versions are kept.
  absl::StatusOr<std::shared_ptr<const runtime::KeptPlan>> Find(
      uint64_t version) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Rising.
  std::vector<uint64_t> Versions() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ports::Files* const files_;
  mutable absl::Mutex mutex_;
  // By their slots.
  std::map<uint64_t, std::shared_ptr<const runtime::KeptPlan>> plans_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_PLAN_ARCHIVE_H_

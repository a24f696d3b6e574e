// The learner that the node was given last, what its plan may need of memory
// with it, and the next one: for a plan that names another model or means
// something else by its data, and for other rows.
#ifndef DFL_APP_MODELS_NODE_LEARNER_H_
#define DFL_APP_MODELS_NODE_LEARNER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/learner_factory.h"
#include "daemon/app/logger.h"
#include "daemon/app/memory_limit.h"
#include "daemon/control/backend.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/contract/data_section.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/memory_need.h"

namespace dfl::app {

struct PlanLimits {
  uint64_t max_model_bytes = uint64_t{4} << 30;
  MemoryLimit memory;
};

// Thread-safe. Find and OnRows read files and build a model, which takes
// seconds: call them away from the loop, and one at a time.
class NodeLearner {
 public:
  // What a learner was built for, and what it is.
  struct Built {
    core::ModelSpec spec;
    core::DataSection section;
    core::DataContract contract;
    int64_t batch_size = 0;
    ports::ModelInfo model;
    ports::DataInfo data;
    std::string engine;  // LearnerFactory::EngineOf
  };
  struct Next {
    Built built;
    std::unique_ptr<ports::Learner> learner;  // null: the present one stays
  };

  // Both must outlive it.
  NodeLearner(PlanLimits limits, LearnerFactory& learners, Logger& log)
      : limits_(std::move(limits)), learners_(learners), log_(log) {}

  // The learner that the plan needs: the present one where model and contract
  // stay as they are.
  // Errors: as LearnerFactory::Offer and Build, and core::Resolve;
  // INVALID_ARGUMENT beyond max_model_bytes, or when data or model are such
  // that the plan cannot use them.
  absl::StatusOr<Next> Find(const core::DerivedPlan& derived)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The present model on `rows` under the present contract, which stays. There
  // must be a present one.
  // Errors: as Find; RESOURCE_EXHAUSTED: with the present rows, which are held
  // until a boundary, it would be more memory than is allowed.
  absl::StatusOr<Next> OnRows(LearnerFactory& rows) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether files of `file_bytes` may be read while the present rows, whose
  // files had `present_file_bytes`, are in memory. They are taken to grow in
  // memory as those did.
  // Errors: RESOURCE_EXHAUSTED, as OnRows.
  absl::Status MayRead(int64_t file_bytes, int64_t present_file_bytes) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A plan may need so much: the limit, or what the present one does.
  // Errors: as CheckMemory.
  absl::Status MayNeed(const runtime::MemoryNeed& need) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The node was given a plan with this learner.
  void SetGiven(Built built, const runtime::MemoryNeed& need)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // It was given the present model on other rows.
  void SetRenewed(Built built) ABSL_LOCKS_EXCLUDED(mutex_);
  // It has other members: so has its need of memory.
  void OnFollowed(const core::DerivedPlan& plan) ABSL_LOCKS_EXCLUDED(mutex_);

  // Nullopt: no plan was taken yet.
  std::optional<Built> built() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Fills in memory, learner and threads.
  void Tell(control::DaemonStatus& status) const ABSL_LOCKS_EXCLUDED(mutex_);
  // What the plan that is taken may need; 0: none.
  int64_t need_bytes() const ABSL_LOCKS_EXCLUDED(mutex_);
  const MemoryLimit& memory_limit() const { return limits_.memory; }

 private:
  absl::StatusOr<std::unique_ptr<ports::Learner>> Build(
      LearnerFactory& learners, const core::ModelSpec& spec,
      const core::DataContract& contract, int64_t batch_size) const;
  // `rows` bytes of rows, and the model that is built for them, beside all that
  // the plan needs.
  absl::Status MayHold(int64_t rows) const ABSL_LOCKS_EXCLUDED(mutex_);

  const PlanLimits limits_;
  LearnerFactory& learners_;
  Logger& log_;

  mutable absl::Mutex mutex_;
  std::optional<Built> built_ ABSL_GUARDED_BY(mutex_);
  int64_t need_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace dfl::app

#endif  // DFL_APP_MODELS_NODE_LEARNER_H_

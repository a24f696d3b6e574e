// control::Backend over the node: reads published copies, and posts orders.
//
// Plans are taken over one at a time on a thread of their own (reading data and
// building a model takes seconds), so the node's loop and control's threads
// never wait for that. Order of a change: checked, learner built, stored on
// disk, adopted by the node at its next boundary.
#ifndef DFL_APP_BACKEND_H_
#define DFL_APP_BACKEND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/async_trainer.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/learner_factory.h"
#include "daemon/app/logger.h"
#include "daemon/app/memory_limit.h"
#include "daemon/app/worker.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/backend.h"
#include "daemon/runtime/node.h"
#include "daemon/store/node_state.h"

namespace dfl::app {

struct BackendOptions {
  NodeId self;
  bool insecure = false;
  uint64_t max_model_bytes = uint64_t{4} << 30;
  MemoryLimit memory_limit;
  std::vector<config::EffectiveSetting> settings;
  std::vector<std::string> peer_addresses;  // bound
  std::vector<std::string> peers;           // dialled, from the settings
};

class Backend final : public control::Backend {
 public:
  // All must outlive it. `node` is touched on `loop` only.
  Backend(BackendOptions options, EventLoop& loop, runtime::Node& node,
          LearnerFactory& learners, store::NodeStateStore& store,
          EventHub& events, Logger& log);
  ~Backend() override;

  // Takes up where the last daemon on this state directory stopped: its plan,
  // and training if it was wanted. `state` is what was loaded. Blocks until
  // the learner is built; before the control server starts.
  // Errors: as ApplyPlan; the daemon may go on without a plan.
  absl::Status Restore(store::NodeState state);

  // A plan from the settings, when none was stored. Blocks.
  absl::Status AdoptInitialPlan(const std::string& yaml,
                                const std::string& file_name, bool start);

  // Publishes a copy of the node's status. On the loop.
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);

  // control::Backend
  control::VersionInfo Version() override;
  control::DaemonStatus Status() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::unique_ptr<control::Subscription> Subscribe(
      std::function<void(const control::TimedEvent&)> on_event) override;
  control::PlanDocument Plan() override ABSL_LOCKS_EXCLUDED(mutex_);
  void ApplyPlan(control::ApplyPlanOptions options,
                 control::Done<control::ApplyPlanResult> done) override;
  void Train(control::TrainAction action,
             control::Done<ports::Phase> done) override;
  std::vector<control::PeerAddress> Peers() override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AddPeer(const std::string& address) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RemovePeer(const std::string& address) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<control::Setting> Settings() override;
  void BeginExport(
      control::ModelFileFormat format,
      control::Done<std::unique_ptr<control::ModelSource>> done) override;
  absl::StatusOr<std::unique_ptr<control::ModelSink>> BeginImport(
      control::ModelFileFormat format, int64_t total_bytes) override
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What the present learner was built for, and what it is.
  struct Built {
    core::ModelSpec spec;
    ports::ModelInfo model;
    ports::DataInfo data;
  };

  // On the setup thread. `stored`: the plan is on disk already.
  absl::StatusOr<control::ApplyPlanResult> Apply(
      const control::ApplyPlanOptions& options, const std::string& file_name,
      bool stored = false) ABSL_LOCKS_EXCLUDED(mutex_);
  // Errors: as LearnerFactory::Build; INVALID_ARGUMENT beyond max_model_bytes.
  absl::StatusOr<std::unique_ptr<ports::Learner>> BuildLearner(
      const core::ModelSpec& spec);
  // Whether a plan may need so much: within the limit, or no more than the plan
  // that is held. A stored plan was taken before: it is only told.
  // Errors: as CheckMemory.
  absl::Status MayNeed(const runtime::MemoryNeed& need, bool stored)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Any thread; waits for the disk.
  absl::Status SaveState() ABSL_LOCKS_EXCLUDED(store_mutex_, mutex_);
  static control::PeerAddress AddedPeer(const std::string& address);
  void ForgetAddedPeer(const std::string& address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DialLater(const std::string& address);
  // Calls `stored` on the loop when it is on disk, or could not be written.
  void WantPhase(store::DesiredPhase phase, std::function<void()> stored)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Order(control::TrainAction action);
  // The same, and nothing is written.
  absl::Status OrderNode(control::TrainAction action)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const BackendOptions options_;
  EventLoop& loop_;
  runtime::Node& node_;
  LearnerFactory& learners_;
  store::NodeStateStore& store_;
  EventHub& events_;
  Logger& log_;
  const absl::Time started_;

  // The trainer the node owns; touched on the loop.
  AsyncTrainer* trainer_ = nullptr;

  absl::Mutex store_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // around store_
  absl::Mutex mutex_;
  runtime::NodeStatus status_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, control::PeerAddress> peers_ ABSL_GUARDED_BY(mutex_);
  store::NodeState state_ ABSL_GUARDED_BY(mutex_);
  std::optional<Built> built_ ABSL_GUARDED_BY(mutex_);
  // Of the plan that is held; 0: none.
  int64_t need_bytes_ ABSL_GUARDED_BY(mutex_) = 0;

  Worker setup_;  // last: stopped first
};

}  // namespace dfl::app

#endif  // DFL_APP_BACKEND_H_

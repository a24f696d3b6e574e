// control::Backend over the node: reads published copies, and posts orders.
//
// Plans are taken over, and orders written to disk, one after the other on a
// thread of its own, so the node's loop and control's threads never wait for
// that.
#ifndef DFL_APP_CONTROL_BACKEND_H_
#define DFL_APP_CONTROL_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/address_book.h"
#include "daemon/app/event_hub.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/learner_factory.h"
#include "daemon/app/logger.h"
#include "daemon/app/models/checkpoint_transfers.h"
#include "daemon/app/models/model_transfers.h"
#include "daemon/app/models/publisher.h"
#include "daemon/app/network/plan_archive.h"
#include "daemon/app/plan_taker.h"
#include "daemon/app/service/frozen_watch.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/app/train_orders.h"
#include "daemon/app/turns.h"
#include "daemon/app/views/members_view.h"
#include "daemon/app/worker.h"
#include "daemon/config/node_settings.h"
#include "daemon/control/backend.h"
#include "daemon/discovery/names.h"
#include "daemon/runtime/keeper/run_keeper.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

class NewData;
class Orders;
class Security;

struct BackendOptions {
  NodeId self;
  bool insecure = false;
  // Null where security is off. It outlives the backend.
  Security* security = nullptr;
  // Null: the node takes no records. It outlives the backend.
  Orders* orders = nullptr;
  // Null: nobody looks for new data. It outlives the backend.
  NewData* new_data = nullptr;
  // Null: there is none. It outlives the backend.
  runtime::Membership* membership = nullptr;
  // Null: plans that follow who is there have this node alone. It outlives the
  // backend.
  runtime::PlanFollower* follower = nullptr;
  // For past plans; null: they are kept in memory alone. It outlives the
  // backend.
  ports::Files* files = nullptr;
  // Null: the node keeps none. Else they outlive the backend.
  store::CheckpointFiles* checkpoints = nullptr;
  ports::Worker* checkpoint_worker = nullptr;
  PlanLimits limits;
  PlanSteps steps;
  config::PublishSettings publish;
  std::vector<config::EffectiveSetting> settings;
  std::string cluster;                         // of the settings
  std::vector<std::string> peer_addresses;     // bound
  std::vector<std::string> peers;              // dialled, from the settings
  std::shared_ptr<discovery::NameList> names;  // as AddressBook's; may be null
};

class ControlBackend final : public control::Backend {
 public:
  // All must outlive it. `node` is touched on `loop` only; `keeper` has begun.
  ControlBackend(BackendOptions options, EventLoop& loop, runtime::Node& node,
                 LearnerFactory& learners, runtime::RunKeeper keeper,
                 EventHub& events, Logger& log);
  ~ControlBackend() override;

  // Takes up where the last daemon on this state directory stopped: its plan,
  // and training if it was wanted. Without a plan it only counts the start.
  // Blocks until the learner is built; before the control server starts.
  // Errors: as ApplyPlan; the daemon may go on without a plan, and the status
  // warns of it. The same plan can be applied again, and then training goes on
  // that was wanted. Without a plan: as Files.
  absl::Status Restore();

  // A plan from the settings, when none was stored. Blocks.
  absl::Status AdoptInitialPlan(const std::string& yaml,
                                const std::string& file_name, bool start);

  // From here on the network's orders are obeyed, first those that are on disk,
  // and new data are taken up. Once, after the two above; not on the loop.
  void Connect();

  // The settings as they are in force now, and the peers that they name. Any
  // thread.
  void SetSettings(const std::vector<config::EffectiveSetting>& settings,
                   const std::vector<std::string>& peers)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // As FrozenWatch::Look, of the training. On the loop.
  std::optional<FrozenWatch::Frozen> LookIfFrozen(
      absl::Duration patience) const {
    const AsyncTrainer* trainer = plans_.trainer();
    return trainer ? trainer->LookIfFrozen(patience) : std::nullopt;
  }

  // Publishes a copy of the node's status. On the loop.
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);
  // What was published holds still. On the loop.
  void StillHolds() { members_.StillHolds(); }

  // control::Backend
  control::VersionInfo Version() override;
  control::DaemonStatus Status() override ABSL_LOCKS_EXCLUDED(mutex_);
  std::unique_ptr<control::Subscription> Subscribe(
      std::function<void(const control::TimedEvent&)> on_event) override;
  control::KeptEvents Events() override { return events_.Events(); }
  control::PlanDocument Plan() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<control::PlanDocument> PastPlan(uint64_t version) override;
  void ApplyPlan(control::ApplyPlanOptions options,
                 control::Done<control::ApplyPlanResult> done) override;
  void GetData(std::string yaml, control::Begin begin,
               control::Done<control::NodeData> done) override;
  void PutRecord(std::string record, control::Caller caller,
                 control::Done<control::PutRecordResult> done) override;
  std::vector<control::RecordInfo> ListRecords() override;
  void Train(control::TrainAction action, control::Begin begin,
             control::Done<ports::Phase> done) override;
  std::vector<control::PeerAddress> Peers() override {
    return addresses_.List();
  }
  absl::Status AddPeer(const std::string& address) override {
    return addresses_.Add(address);
  }
  absl::Status RemovePeer(const std::string& address) override {
    return addresses_.Remove(address);
  }
  control::MemberTable Members() override { return members_.Members(); }
  void AskMember(NodeId node, absl::Duration within,
                 control::Done<std::string> done) override {
    members_.Ask(node, within, std::move(done));
  }
  void PingMember(NodeId node, absl::Duration within,
                  control::Done<control::MemberPing> done) override {
    members_.Ping(node, within, std::move(done));
  }
  std::vector<control::Setting> Settings() override ABSL_LOCKS_EXCLUDED(mutex_);
  void BeginExport(control::ModelFileFormat format,
                   ModelTransfers::SourceDone done) override {
    models_.BeginExport(format, std::move(done));
  }
  absl::StatusOr<std::unique_ptr<control::ModelSink>> BeginImport(
      const control::ImportRequest& request) override {
    return models_.BeginImport(request);
  }
  control::Checkpoints& checkpoints() override { return checkpoints_; }

 private:
  void OnPlanSet() ABSL_LOCKS_EXCLUDED(mutex_);  // or refused; on the loop
  // Keeps the plan that was taken, for a rollback.
  void KeepPlan();
  absl::StatusOr<control::ApplyPlanResult> TakePlan(
      const control::ApplyPlanOptions& options);

  const BackendOptions options_;
  EventLoop& loop_;
  runtime::Node& node_;
  LearnerFactory& learners_;
  EventHub& events_;
  Logger& log_;
  const absl::Time started_;
  SharedKeeper keeper_;
  PlanArchive archive_;
  PlanTaker plans_;
  AddressBook addresses_;
  ModelTransfers models_;
  CheckpointTransfers checkpoints_;
  MembersView members_;
  uint64_t noted_in_force_ = 0;  // told to the keeper; on the loop
  TrainOrders training_;
  Turns turns_;

  absl::Mutex mutex_;
  std::vector<control::Setting> settings_ ABSL_GUARDED_BY(mutex_);
  runtime::NodeStatus status_ ABSL_GUARDED_BY(mutex_);
  // Why the stored plan is not taken up; "": it is, or there is none. The run
  // that it was to train goes on once it is.
  std::string stored_fault_ ABSL_GUARDED_BY(mutex_);
  std::string owed_run_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<Publisher> publisher_;  // null: the model is not published
  Worker setup_;                          // last: stopped first
};

}  // namespace dfl::app

#endif  // DFL_APP_CONTROL_BACKEND_H_

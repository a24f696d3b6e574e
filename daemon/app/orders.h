// The orders of the network as this node obeys them: signed records that
// neighbours passed on or a person brought.
//
//   RecordGossip --taken--> plan:  PlanTaker, as any plan
//                           phase: the node, once, in the run it is for
//                           ban:   NetworkSecurity and the judge of records
//
// A record that this node cannot obey is passed on all the same: a plan may be
// for others. What keeps it from obeying is in the status.
#ifndef DFL_APP_ORDERS_H_
#define DFL_APP_ORDERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/plan_taker.h"
#include "daemon/app/security.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/app/worker.h"
#include "daemon/base/ids.h"
#include "daemon/control/backend.h"
#include "daemon/ports/events.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/runtime/gossip/record_gossip.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

class Orders final : public runtime::RecordListener {
 public:
  // All must outlive it. `recheck` is called on the loop when bans have
  // changed, to look at live links.
  Orders(NodeId self, Security& security, EventLoop& loop,
         ports::EventSink& events, std::function<void()> recheck);

  const runtime::RecordJudge& judge() const { return codec_; }

  // Reads what is on disk, so that bans hold before anybody can connect. On the
  // loop, once. The answer is for the log, "" when all is well.
  // Errors: as RecordGossip::Load.
  absl::StatusOr<std::string> Load(runtime::RecordGossip& gossip);

  // Gives the orders to these from here on, first what is in the book and was
  // not obeyed before. Once, when the stored plan has been taken up; not on the
  // loop. All must outlive the last record.
  void Connect(runtime::Node& node, PlanTaker& plans, SharedKeeper& keeper,
               Worker& setup);

  // Nothing is given to them any more. On the loop.
  void Disconnect();

  // Authorities may have changed: records are judged anew. On the loop, each
  // period.
  void Recheck();

  // As control::Backend. ApplyPlan waits for disk and learner; not on the loop.
  absl::StatusOr<control::ApplyPlanResult> ApplyPlan(
      const control::ApplyPlanOptions& options);
  void PutRecord(std::string bytes,
                 control::Done<control::PutRecordResult> done);
  std::vector<control::RecordInfo> List() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets what a status says of it. Any thread.
  void Tell(control::DaemonStatus& status) const ABSL_LOCKS_EXCLUDED(mutex_);

  // runtime::RecordListener
  void OnRecordTaken(const runtime::Record& record,
                     const NodeId& from) override;

 private:
  void TakePlan(const runtime::Record& record);
  void ObeyPhase();
  void RefreshBans();
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetPlanFault(std::string fault) ABSL_LOCKS_EXCLUDED(mutex_);
  const NodeId self_;
  Security& security_;
  EventLoop& loop_;
  ports::EventSink& events_;
  records::SignedRecordCodec codec_;
  const std::function<void()> recheck_;

  runtime::RecordGossip* gossip_ = nullptr;
  runtime::Node* node_ = nullptr;
  PlanTaker* plans_ = nullptr;
  SharedKeeper* keeper_ = nullptr;
  Worker* setup_ = nullptr;
  // Counts plans that wait to be taken: only the newest of them is.
  std::atomic<uint64_t> plan_turn_{0};
  // On the loop.
  uint64_t obeyed_ = 0;  // MarkOf the last phase that was obeyed; 0: none
  int64_t judged_generation_ = -1;  // of NetworkSecurity

  mutable absl::Mutex mutex_;
  std::vector<control::RecordInfo> published_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> banned_ ABSL_GUARDED_BY(mutex_);
  std::string ban_of_self_ ABSL_GUARDED_BY(mutex_);
  std::string plan_fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_ORDERS_H_

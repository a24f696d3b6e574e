// The orders of the network as this node obeys them: records that neighbours
// passed on or a person brought. In a secured network they are signed; in an
// insecure one nobody signs, and whoever brings one is believed.
//
//   RecordGossip --taken--> plan:   PlanOrders, and so PlanTaker
//                           phase:  PhaseOrders, and so the node
//                           ban:    NetworkSecurity and the judge of records
//                           drain:  PhaseOrders as well
//                           labels: what this node says of itself
//
// A record that this node cannot obey is passed on all the same: a plan may be
// for others. What keeps it from obeying is in the status, and told to all
// members.
#ifndef DFL_APP_ORDERS_H_
#define DFL_APP_ORDERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/network/own_facts.h"
#include "daemon/app/network/phase_orders.h"
#include "daemon/app/network/plan_orders.h"
#include "daemon/app/plan_taker.h"
#include "daemon/app/security.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/app/worker.h"
#include "daemon/base/ids.h"
#include "daemon/control/backend.h"
#include "daemon/ports/events.h"
#include "daemon/records/records_in_force.h"
#include "daemon/records/signed_record_codec.h"
#include "daemon/records/unsigned_record_codec.h"
#include "daemon/runtime/gossip/record_gossip.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

struct OrdersOptions {
  NodeId self;
  // The network's name where security is off; may be "".
  std::string insecure_cluster;
  PlanPauses pauses;
};

class Orders final : public runtime::RecordListener {
 public:
  // `security` is null in an insecure network. All must outlive it. `recheck`
  // is called on the loop when bans have changed, to look at live links.
  Orders(OrdersOptions options, Security* security, EventLoop& loop,
         ports::EventSink& events, std::function<void()> recheck);

  const runtime::RecordJudge& judge() const;

  // Reads what is on disk, so that bans hold before anybody can connect.
  // `membership` says already what the settings say of this node. On the loop,
  // once. Both must outlive the last record. The answer is for the log, "" when
  // all is well.
  // Errors: as RecordGossip::Load.
  absl::StatusOr<std::string> Load(runtime::RecordGossip& gossip,
                                   runtime::Membership& membership);

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

  // Tells the members how this node does, and tries to take a plan once more
  // where the members have changed. `view` says why the plan's graph does not
  // follow the members that are there; OK: it does. On the loop, each tick.
  void Tick(const runtime::NodeStatus& status, const absl::Status& view);

  // As control::Backend. ApplyPlan waits for disk and learner; not on the loop.
  // In an insecure network a document becomes a record, so it reaches all.
  absl::StatusOr<control::ApplyPlanResult> ApplyPlan(
      const control::ApplyPlanOptions& options);
  void PutRecord(std::string bytes,
                 control::Done<control::PutRecordResult> done);
  std::vector<control::RecordInfo> List() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The settings give the node these labels now. On the loop.
  void SetSettingsLabels(records::Labels labels);

  // Whether the node drains, and so takes no order to train. On the loop.
  bool draining() const { return phase_orders_.draining(); }

  // Sets what a status says of it. Any thread.
  void Tell(control::DaemonStatus& status) const ABSL_LOCKS_EXCLUDED(mutex_);

  // runtime::RecordListener
  void OnRecordTaken(const runtime::Record& record,
                     const NodeId& from) override;

 private:
  // Completes and takes a document, and makes a record of it.
  absl::StatusOr<control::ApplyPlanResult> ApplyDocument(
      const control::ApplyPlanOptions& options);
  absl::StatusOr<control::ApplyPlanResult> ApplyRecord(
      const control::ApplyPlanOptions& options);
  // Whether the plan that counts in the network is this document.
  bool IsNewest(absl::string_view plan);
  // The same, on the loop.
  bool HoldsNewest(absl::string_view plan) const;
  // Passes `bytes` on, the record of `plan`, which the node has just taken.
  // Errors: ABORTED when another plan counts, which is then taken again; of the
  // disk, which say that the plan is in force here alone.
  absl::Status Spread(const std::string& bytes, absl::string_view plan,
                      uint64_t version);
  // Passes the record of the stored plan on, where it is not in the book.
  void RestoreRecord(const runtime::KeptPlan& plan);
  void TakeNewestPlan();
  void ObeyPhase() { phase_orders_.ObeyPhase(gossip_->book(), labels_); }
  void TakeLabels();
  void RefreshBans();
  void Publish() ABSL_LOCKS_EXCLUDED(mutex_);

  const OrdersOptions options_;
  Security* const security_;
  EventLoop& loop_;
  ports::EventSink& events_;
  // One of the two.
  const std::unique_ptr<records::SignedRecordCodec> signed_;
  const std::unique_ptr<records::UnsignedRecordCodec> unsigned_;
  const std::function<void()> recheck_;
  PlanOrders plan_orders_;
  PhaseOrders phase_orders_;

  runtime::RecordGossip* gossip_ = nullptr;
  runtime::Membership* membership_ = nullptr;
  PlanTaker* plans_ = nullptr;
  SharedKeeper* keeper_ = nullptr;
  // On the loop.
  int64_t judged_generation_ = -1;   // of NetworkSecurity
  records::Labels settings_labels_;  // of this node
  records::Labels labels_;           // in force
  size_t members_ = 0;               // that were known at the last tick
  OwnFacts own_facts_;

  mutable absl::Mutex mutex_;
  std::vector<control::RecordInfo> published_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> banned_ ABSL_GUARDED_BY(mutex_);
  std::string ban_of_self_ ABSL_GUARDED_BY(mutex_);  // "": it is not banned
  std::string view_fault_ ABSL_GUARDED_BY(mutex_);   // "": none
};

}  // namespace dfl::app

#endif  // DFL_APP_ORDERS_H_

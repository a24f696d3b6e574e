// What control tells of the network's members: a published copy of the table
// that membership keeps, and questions to members.
#ifndef DFL_APP_VIEWS_MEMBERS_VIEW_H_
#define DFL_APP_VIEWS_MEMBERS_VIEW_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/event_loop.h"
#include "daemon/base/ids.h"
#include "daemon/control/backend.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/runtime/status.h"

namespace dfl::app {

// Thread-safe, but for what says otherwise.
class MembersView {
 public:
  // `status` is what this node tells those who ask for it; it is called on any
  // thread. `membership` may be null: it is off. Loop and membership outlive
  // the view. Not on the loop.
  MembersView(NodeId self, EventLoop& loop, runtime::Membership* membership,
              std::function<control::DaemonStatus()> status);
  // Members are answered no longer. Not on the loop.
  ~MembersView();
  MembersView(const MembersView&) = delete;
  MembersView& operator=(const MembersView&) = delete;

  // The node's status is as new as this. Publishes what changed in the table;
  // `status` says who is linked. On the loop; costs little where nothing did.
  void Publish(const runtime::NodeStatus& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // What was published is as new as this. On the loop.
  void StillHolds() ABSL_LOCKS_EXCLUDED(mutex_);

  // As control::Backend's.
  control::MemberTable Members() const ABSL_LOCKS_EXCLUDED(mutex_);
  void Ask(const NodeId& node, absl::Duration within,
           control::Done<std::string> done);
  void Ping(const NodeId& node, absl::Duration within,
            control::Done<control::MemberPing> done);

 private:
  struct Row {
    runtime::Member member;
    bool linked = false;
  };
  using Rows = std::map<NodeId, Row>;

  bool on() const { return membership_ != nullptr && membership_->enabled(); }
  std::string Report() const ABSL_LOCKS_EXCLUDED(mutex_);
  const NodeId self_;
  EventLoop& loop_;
  runtime::Membership* const membership_;
  const std::function<control::DaemonStatus()> status_;

  // What rows_ was made from; on the loop.
  uint64_t shown_changes_ = 0;
  std::vector<NodeId> shown_linked_;  // sorted

  mutable absl::Mutex mutex_;
  std::shared_ptr<const Rows> rows_ ABSL_GUARDED_BY(mutex_);
  absl::Time published_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_VIEWS_MEMBERS_VIEW_H_

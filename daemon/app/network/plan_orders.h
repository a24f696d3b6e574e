// The network's newest plan, as this node takes it up. Where it cannot, for
// want of memory, of a file of its model or since its data mean something else,
// it is degraded, and tries again until it can or a newer plan comes:
//
//   after 30 s
//   after 2 s when a file is missing
//   at once when TryAgain says that something has changed
#ifndef DFL_APP_NETWORK_PLAN_ORDERS_H_
#define DFL_APP_NETWORK_PLAN_ORDERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/app/event_loop.h"
#include "daemon/app/plan_taker.h"
#include "daemon/app/shared_keeper.h"
#include "daemon/app/worker.h"
#include "daemon/ports/events.h"
#include "daemon/runtime/gossip/record.h"
#include "daemon/runtime/node.h"

namespace dfl::app {

// Between two tries.
struct PlanPauses {
  absl::Duration retry = absl::Seconds(30);
  absl::Duration missing_file = absl::Seconds(2);
};

// Loop only, but for fault.
class PlanOrders {
 public:
  // Both must outlive it. `looked` is called after each try.
  PlanOrders(EventLoop& loop, ports::EventSink& events, PlanPauses pauses,
             std::function<void()> looked)
      : loop_(loop),
        events_(events),
        pauses_(pauses),
        looked_(std::move(looked)) {}

  // Plans are taken from here on. All must outlive the last of them.
  void Connect(const runtime::Node& node, PlanTaker& plans,
               SharedKeeper& keeper, Worker& setup) {
    node_ = &node;
    plans_ = &plans;
    keeper_ = &keeper;
    setup_ = &setup;
  }
  // No plan is taken any more.
  void Disconnect();

  // `record` is the newest plan. Without effect before Connect; nothing is done
  // anew where the node has just been given it.
  void Take(const runtime::Record& record) ABSL_LOCKS_EXCLUDED(mutex_);

  // What kept the node from taking the plan may have changed.
  void TryAgain();

  // Why the newest plan is not taken; "": it is, or there is none. Any thread.
  std::string fault() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Plan {
    control::ApplyPlanOptions options;
    uint64_t counter = 0;
    std::string author;
  };

  bool IsTaken(const runtime::Record& record) const;
  void Try();
  // Returns whether that is news.
  bool SetFault(const std::string& fault) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnTried(const Plan& plan, const absl::Status& taken)
      ABSL_LOCKS_EXCLUDED(mutex_);

  EventLoop& loop_;
  ports::EventSink& events_;
  const PlanPauses pauses_;
  const std::function<void()> looked_;
  const runtime::Node* node_ = nullptr;
  PlanTaker* plans_ = nullptr;
  SharedKeeper* keeper_ = nullptr;
  Worker* setup_ = nullptr;
  // The plan that is not taken yet; none: there is none.
  std::optional<Plan> owed_;
  // Counts tries: only the newest of them counts.
  std::atomic<uint64_t> turn_{0};

  mutable absl::Mutex mutex_;
  std::string fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_PLAN_ORDERS_H_

// A node that takes no part in its plan for now: it is no member, since it only
// watches, drains, or is not selected. It does not train then; where it did, or
// was ordered to, it goes on once it is a member.
//
// It waits in phase idle, or paused if it has a model. Its neighbours see that,
// and wait for it no longer.
//
// Loop only.
#ifndef DFL_RUNTIME_BENCH_H_
#define DFL_RUNTIME_BENCH_H_

#include <functional>
#include <utility>

#include "daemon/ports/events.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/own_state.h"

namespace dfl::runtime {

class Bench {
 public:
  // `go_on`: the node is to start, or to resume. All must outlive it.
  Bench(OwnState& own, Joining& joining, std::function<void()> go_on)
      : own_(own), joining_(joining), go_on_(std::move(go_on)) {}

  // A plan may be new, or its members. Away from a boundary a node that trains
  // trains on.
  void Look() {
    if (!own_.run.has_plan()) return;
    if (own_.run.node().takes_part) {
      if (std::exchange(waits_, false)) go_on_();
      return;
    }
    if (own_.phases.Is(ports::Phase::kJoining)) {
      joining_.End();
      Wait(ports::Phase::kIdle);
    } else if (own_.phases.Running() && own_.boundary.here()) {
      joining_.End();
      Wait(ports::Phase::kPaused);
    }
  }

  // Whether an order to train, or not to, is remembered here and is not for the
  // phase: the node takes no part and waits.
  bool Takes(bool order) {
    const bool away = own_.run.has_plan() && !own_.run.node().takes_part &&
                      (own_.phases.Is(ports::Phase::kIdle) ||
                       own_.phases.Is(ports::Phase::kPaused));
    if (!away) return false;
    waits_ = order;
    if (order) own_.phases.Set(own_.phases.now(), kWhy);
    return true;
  }

 private:
  static constexpr char kWhy[] =
      "takes no part in the plan for now: it watches, drains, or is none of "
      "its participants";

  void Wait(ports::Phase phase) {
    waits_ = true;
    own_.phases.Want(ports::Phase::kIdle);
    own_.phases.Set(phase, kWhy);
  }

  OwnState& own_;
  Joining& joining_;
  const std::function<void()> go_on_;
  bool waits_ = false;  // it is to train once it takes part
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_BENCH_H_

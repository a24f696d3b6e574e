// What this node says to all others of how it does: the part of its facts that
// changes while it runs. Addresses, pace and participation are set once, where
// the membership is made.
#ifndef DFL_APP_NETWORK_OWN_FACTS_H_
#define DFL_APP_NETWORK_OWN_FACTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/ports/member_frames.h"
#include "daemon/runtime/keeper/run_state.h"
#include "daemon/runtime/status.h"

namespace dfl::app {

// Thread-compatible.
class OwnFacts {
 public:
  struct Now {
    const runtime::NodeStatus& status;
    std::map<std::string, std::string> labels;
    std::optional<std::string> drain;  // the reason; none: it does not drain
    std::string plan_fault;  // why the network's plan is not taken; "": it is
    // That the node has taken last; never null.
    std::shared_ptr<const runtime::KeptPlan> plan;
  };

  // `facts` as they are from now on. The condition is, the first that holds:
  //   draining   the node drains
  //   degraded   it cannot take the network's plan, cannot train, has failed,
  //              cannot keep what it needs after a restart, or cannot take up
  //              its new data
  //   joining    it gets its model from the others
  //   well       else
  ports::MemberFacts Tell(ports::MemberFacts facts, const Now& now);

 private:
  // Of the plan in force, by its text.
  std::shared_ptr<const runtime::KeptPlan> marked_;
  uint64_t mark_ = 0;
};

// `text` as a reason that others are told: printable, and of at most
// ports::kMaxReasonBytes.
std::string ReasonFrom(absl::string_view text);

}  // namespace dfl::app

#endif  // DFL_APP_NETWORK_OWN_FACTS_H_

// A plan that waits for the boundary, and how it comes into force there: as a
// change of the run that is on, or as a new run. And a trainer on other rows
// that waits there to take the place of the present one.
//
// Loop only.
#ifndef DFL_RUNTIME_PLAN_ADOPTION_H_
#define DFL_RUNTIME_PLAN_ADOPTION_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "daemon/core/algorithm/node_plan.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/events.h"
#include "daemon/ports/learner.h"
#include "daemon/runtime/algorithm_lives.h"
#include "daemon/runtime/evaluations.h"
#include "daemon/runtime/exchange.h"
#include "daemon/runtime/joining.h"
#include "daemon/runtime/own_state.h"
#include "daemon/runtime/peer_table.h"
#include "daemon/runtime/presence.h"
#include "daemon/runtime/training.h"

namespace dfl::runtime {

class PlanAdoption {
 public:
  // All must outlive it.
  PlanAdoption(OwnState& own, PeerTable& peers, Exchange& exchange,
               Presence& presence, Training& training, Joining& joining,
               AlgorithmLives& lives, Evaluations& evaluations,
               ports::EventSink& events);

  // Takes the plan over at the next boundary; when the node does not train and
  // is at one, at once. See Node::SetPlan.
  absl::Status Set(core::DerivedPlan plan,
                   std::unique_ptr<ports::Trainer> trainer);
  // As Set, for the plan that waits or is in force with other members: a new
  // version, a new learner and all that is said of a plan stay as they are.
  absl::Status FollowView(core::DerivedPlan plan);
  // The present model on other rows: its trainer takes the place of the present
  // one at the next boundary, and the run goes on. It takes the place of that
  // of a plan that waits, too; a plan that is given later and has one is of
  // newer rows. See Node::RenewTrainer.
  absl::Status Renew(std::unique_ptr<ports::Trainer> trainer);
  // At a boundary: brings what waits into force, unless AwaitsLearner().
  void Adopt();
  // At a boundary: installs the trainer that waits, unless a gradient or a
  // prediction is under way; then it waits on, and the node goes on.
  void InstallRenewed();
  // Whether a new run waits for a gradient that outlives its round, since that
  // is of the run before. The node stays at the boundary meanwhile.
  bool AwaitsLearner() const {
    return pending_ && BeginsRun(*pending_) && training_.learner().busy();
  }

  // The plan that waits; null: none.
  const core::RunPlan* pending() const {
    return pending_ ? pending_->plan.get() : nullptr;
  }

 private:
  struct Pending {
    std::shared_ptr<const core::RunPlan> plan;
    core::NodePlan node;
    std::unique_ptr<ports::Trainer> trainer;  // null: the present one stays
    bool only_view = false;  // the plan in force, with other members
  };

  absl::Status Keep(core::DerivedPlan plan,
                    std::unique_ptr<ports::Trainer> trainer, bool only_view);
  bool BeginsRun(const Pending& next) const;
  // `again`: the run had begun before.
  void BeginRun(std::unique_ptr<ports::Trainer> trainer, bool again);

  OwnState& own_;
  PeerTable& peers_;
  Exchange& exchange_;
  Presence& presence_;
  Training& training_;
  Joining& joining_;
  AlgorithmLives& lives_;
  Evaluations& evaluations_;
  ports::EventSink& events_;
  std::optional<Pending> pending_;
  std::unique_ptr<ports::Trainer> renewed_;  // null: none waits
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_PLAN_ADOPTION_H_

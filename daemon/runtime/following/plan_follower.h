// Keeps a node's plan in step with the members of the network. The plan's
// document stays as it is, and so does its version: when those who take part in
// it change, the node is given the same plan with other members, which it takes
// over at its next boundary (Node::FollowView).
//
// Whoever gives the node a plan asks Resolve() for its members, and then tells
// Follow() of it. From there on
//
//   a member joins, leaves, dies, drains, or tells other rows, labels, ...
//     -> the members of the plan are looked up again: the first change at once,
//        further ones together kGather after it
//     -> if they differ, the plan is checked and derived on the Worker
//     -> the node is given the result, and Membership its neighbours
//
// A plan that cannot be had with the members that are there (rows that a knob
// needs are not told, say) stays as it is, and problem() says why; the next
// change is another try. Where membership is switched off nobody but the node
// itself is known to be there, and nothing changes.
//
// Loop only. Pure: dfld and the simulator use the same.
#ifndef DFL_RUNTIME_FOLLOWING_PLAN_FOLLOWER_H_
#define DFL_RUNTIME_FOLLOWING_PLAN_FOLLOWER_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/ids.h"
#include "daemon/core/algorithms/catalogue.h"
#include "daemon/core/plan/derived_plan.h"
#include "daemon/core/plan/member_spec.h"
#include "daemon/core/plan/run_plan.h"
#include "daemon/ports/loop.h"
#include "daemon/runtime/membership/membership.h"
#include "daemon/runtime/node.h"

namespace dfl::runtime {

// Changes that follow one another within this time are taken together.
inline constexpr absl::Duration kGather = absl::Milliseconds(200);

// Those of `members` who may take part in a plan: they are there, as far as is
// known, and do not drain. Sorted by name.
std::vector<core::MemberSpec> PresentAmong(
    const std::map<NodeId, Member>& members);

// `plan` with the members that it has among `present`, checked, as `self` sees
// it; one that is none of a fixed set watches. Thread-safe.
// Errors: as core::CheckPlan.
absl::StatusOr<core::DerivedPlan> DeriveAmong(
    core::RunPlan plan, const std::vector<core::MemberSpec>& present,
    const NodeId& self,
    const core::Catalogue& catalogue = core::BuiltInCatalogue());

class PlanFollower : public MembershipListener {
 public:
  // All must outlive it.
  PlanFollower(NodeId self, ports::Loop& loop, ports::Worker& worker,
               Membership& membership, Node& node,
               const core::Catalogue& catalogue = core::BuiltInCatalogue());
  ~PlanFollower() override;
  PlanFollower(const PlanFollower&) = delete;
  PlanFollower& operator=(const PlanFollower&) = delete;

  // Who is there now. This node is among them, with what membership says of it;
  // where membership is off, it alone, with nothing told.
  std::vector<core::MemberSpec> Present() const;

  // The node was given `plan`, which is `document` derived with some members:
  // they are looked up again at once, since others may have come meanwhile.
  // `document` is as it was read, without members unless it names them.
  void Follow(std::shared_ptr<const core::RunPlan> document,
              const core::DerivedPlan& plan);

  // Called after every change that the node was given, with what it was.
  void SetFollowed(std::function<void(const core::DerivedPlan&)> followed) {
    followed_ = std::move(followed);
  }

  // Why the node does not have the members that are there; OK: it has.
  const absl::Status& problem() const { return problem_; }

  // MembershipListener
  void OnMember(const NodeId& node, const Member* member) override;

 private:
  struct Job;

  void Schedule(absl::Duration delay);
  void Look();
  void Take(Job& job);
  void TellNeighbours(const core::NodePlan& plan);

  const NodeId self_;
  ports::Loop& loop_;
  ports::Worker& worker_;
  Membership& membership_;
  Node& node_;
  const core::Catalogue& catalogue_;
  std::function<void(const core::DerivedPlan&)> followed_;
  std::shared_ptr<const core::RunPlan> document_;  // null: no plan yet
  // Those that the node was given last.
  std::vector<core::MemberSpec> members_;
  // Members that the plan could not be had with; nullopt: none so far.
  std::optional<std::vector<core::MemberSpec>> refused_;
  absl::Status problem_;
  absl::Time looked_ = absl::InfinitePast();
  ports::TimerId timer_ = 0;
  bool deriving_ = false;
  bool again_ = false;  // look once more after that
  // Held by what comes back from the worker: null once this is gone.
  std::shared_ptr<PlanFollower*> alive_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_FOLLOWING_PLAN_FOLLOWER_H_

// The run that a node is in: the plan in force, what it means for this node in
// the present round, and its data contract. The other parts of the
// node read it and do not change it.
//
// Loop only. Until Adopt() was called there is no plan, and only has_plan(),
// plan_or_null(), node(), the contract and what a peer is may be asked for:
// nobody is a neighbour or a member.
#ifndef DFL_RUNTIME_RUN_IN_FORCE_H_
#define DFL_RUNTIME_RUN_IN_FORCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "daemon/base/ids.h"
#include "daemon/core/algorithm/algorithm_info.h"
#include "daemon/core/algorithm/node_plan.h"
#include "daemon/core/contract/data_contract.h"
#include "daemon/core/plan/run_plan.h"

namespace dfl::runtime {

class RunInForce {
 public:
  explicit RunInForce(NodeId self) : self_(std::move(self)) {}

  // `node` is `plan` derived for this node in round 0.
  void Adopt(std::shared_ptr<const core::RunPlan> plan, core::NodePlan node);
  // A learner was installed, whose model has this contract.
  void SetContract(core::DataContract contract) {
    digest_ = core::DigestOf(contract);
    contract_ = std::move(contract);
  }

  bool has_plan() const { return plan_ != nullptr; }
  const core::RunPlan* plan_or_null() const { return plan_.get(); }
  const std::shared_ptr<const core::RunPlan>& shared_plan() const {
    return plan_;
  }
  const core::RunPlan& plan() const { return *plan_; }
  // This node's view in the round that FollowTopology last named.
  const core::NodePlan& node() const { return node_; }
  // The catalogue's entry for the plan's algorithm; null if it has none.
  const core::AlgorithmInfo* algorithm() const { return node_.algorithm; }
  bool lock_step() const { return algorithm() && algorithm()->lock_step; }
  bool gives_mass() const { return algorithm() && algorithm()->gives_mass; }
  // nullopt: there is no learner yet.
  const std::optional<core::DataContract>& contract() const {
    return contract_;
  }
  const core::DataContract* contract_or_null() const {
    return contract_ ? &*contract_ : nullptr;
  }
  // All 0 without a contract.
  const core::ContractDigest& contract_digest() const { return digest_; }

  bool IsNeighbour(const NodeId& peer) const;
  bool IsMember(const NodeId& peer) const;
  // Whether `peer`, whose state says that it is in our run, takes part in it
  // for all that this node knows: a member, or, where members follow who is
  // there, anybody. It may know of other members than this node does.
  bool MayTakePart(const NodeId& peer) const;
  // Whether members come and go without a new plan.
  bool follows_view() const;
  // Whether `peer` may push to this node: an in-neighbour. Where the topology
  // varies any member may, since its push may be of another round.
  bool MayPush(const NodeId& peer) const;

  // Whether a push of `peer` is taken: of an in-neighbour, and of whoever may
  // be one for all that the peer knows. An algorithm gives those who are no
  // neighbours here no weight.
  bool Takes(const NodeId& peer) const;

  // Whether `round` has a later graph than `present`.
  bool IsOfLaterGraph(int64_t round, int64_t present) const;
  // Takes over neighbours and weights of `round` where the topology varies.
  // Returns whether node() has changed.
  bool FollowTopology(int64_t round);

  // Names the coordinates of symmetric mixing: the same in both directions of
  // an edge, so that coordinates that are not sent do not move the mean.
  uint64_t EdgeSeed(const NodeId& peer, int64_t round) const;
  // As core::SpectralGapIfSmall; computed when it is first asked for.
  double SpectralGap() const;

 private:
  const NodeId self_;
  std::shared_ptr<const core::RunPlan> plan_;
  core::NodePlan node_;
  std::optional<core::DataContract> contract_;
  core::ContractDigest digest_{};
  int64_t graph_number_ = 0;  // the graph that node_ is of
  mutable std::optional<double> spectral_gap_;
};

}  // namespace dfl::runtime

#endif  // DFL_RUNTIME_RUN_IN_FORCE_H_
